"""Output of a gradebook: files for other systems, pages for students and instructors, the summary table."""
