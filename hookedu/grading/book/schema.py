"""The tables of grades.db, whose `user_version` is VERSION, and the way to them from older versions.

submissions   one row per attempt; an attempt is one content of one path inside the folder or zip
    source, attempt (from 1; incremented when the content of the path changes), student, lesson ('' if unknown),
    sha256 (of its bytes; '' if they could not be read), submitted_at (UTC, ISO 8601; '' if unknown), status,
    points, max_points, seconds, notes (JSON, a list of {"zh", "en"}), graded_at (UTC), version (of hookedu),
    course (fingerprint of the lesson when it was graded, see matching.LessonKey), reached (JSON, a list of what it
    reached for behind the scenes, see run/backstage.py)
results       one row per exercise of an attempt
    source, attempt, exercise, outcome (or 'lost'), message_id, points, max_points, seed (repeats the run),
    error ("NameError: ..."), feedback (JSON: what the learner would have read, exercises.feedback.Feedback)
adjustments   points set by hand: student, exercise (or a lesson, for all of it), points (NULL: withdrawn),
    reason, made_at (UTC). All rows are kept, the newest one counts. Grading never writes here.
rules         rule ('attempt', 'due', 'late'), lesson ('' for all others), value: see book.grades
written       what learners wrote: see book.written
"""

from hookedu.grading.book import written

VERSION = 3
_SCHEMA_2 = """
CREATE TABLE submissions (
    source TEXT NOT NULL, attempt INTEGER NOT NULL, student TEXT NOT NULL, lesson TEXT NOT NULL,
    sha256 TEXT NOT NULL, submitted_at TEXT NOT NULL, status TEXT NOT NULL, points INTEGER NOT NULL,
    max_points INTEGER NOT NULL, seconds REAL NOT NULL, notes TEXT NOT NULL, graded_at TEXT NOT NULL,
    version TEXT NOT NULL, course TEXT NOT NULL, PRIMARY KEY (source, attempt)
);
CREATE INDEX submissions_of_student ON submissions (student, lesson);
CREATE TABLE results (
    source TEXT NOT NULL, attempt INTEGER NOT NULL, exercise TEXT NOT NULL, outcome TEXT NOT NULL,
    message_id TEXT NOT NULL, points INTEGER NOT NULL, max_points INTEGER NOT NULL, seed INTEGER,
    error TEXT NOT NULL, feedback TEXT NOT NULL, PRIMARY KEY (source, attempt, exercise),
    FOREIGN KEY (source, attempt) REFERENCES submissions ON DELETE CASCADE
);
CREATE TABLE adjustments (
    id INTEGER PRIMARY KEY, student TEXT NOT NULL, exercise TEXT NOT NULL, points REAL, reason TEXT NOT NULL,
    made_at TEXT NOT NULL
);
CREATE TABLE rules (rule TEXT NOT NULL, lesson TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (rule, lesson));
"""
_TO_3 = f"ALTER TABLE submissions ADD COLUMN reached TEXT NOT NULL DEFAULT '[]'; {written.TABLE}"
SCHEMA = _SCHEMA_2 + _TO_3
# SQL from each version to the next. Version 1 had one attempt per path, notes as lines of `zh · en`, and feedback as
# plain text. Version 2 kept neither what a learner wrote nor what it reached for.
MIGRATIONS = {
    1: f"""
ALTER TABLE submissions RENAME TO submissions_1;
ALTER TABLE results RENAME TO results_1;
{_SCHEMA_2}
INSERT INTO submissions SELECT source, 1, student, lesson, sha256, '', status, points, max_points, seconds,
    notes_of_1(notes), graded_at, version, '' FROM submissions_1;
INSERT INTO results SELECT source, 1, exercise, outcome, message_id, points, max_points, seed, error,
    feedback_of_1(feedback) FROM results_1;
DROP TABLE results_1;
DROP TABLE submissions_1;
""",
    2: _TO_3,
}
