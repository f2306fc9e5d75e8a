"""The gradebook (one SQLite file), and the rules by which attempts become grades."""
