"""The gradebook (one SQLite file) and the rules that turn attempts into grades."""
