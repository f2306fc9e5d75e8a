"""Output of a gradebook: files for other systems, pages for students and instructors, the closing table."""
