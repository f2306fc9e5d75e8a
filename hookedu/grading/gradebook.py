"""The gradebook: grades.db, and grades.csv made from it.

grades.db is SQLite; its `user_version` is VERSION. One transaction writes one submission, so that a run that
was stopped at any moment has kept what was finished.

    submissions   one row a notebook; its identity is `source`, the path inside the folder or zip
        source, student, lesson, sha256 (of its bytes; '' where they could not be read), status, points,
        max_points, seconds, notes (one line each, `zh · en`), graded_at (UTC, ISO 8601), version (of hookedu)
    results       one row an exercise of a submission
        source, exercise, outcome (or 'lost'), message_id, points, max_points, seed (a run repeats with it),
        error ("NameError: ..."), feedback (what the learner would have read)

A submission that is handed in again under the same path takes the place of the earlier one. What was graded
from other folders stays: one gradebook may serve a whole term.
"""

import contextlib
import csv
import datetime
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hookedu
from hookedu.course import CourseError
from hookedu.grading.model import Row, Status
from hookedu.language import Text

VERSION = 1
_SCHEMA = """
CREATE TABLE submissions (
    source TEXT PRIMARY KEY, student TEXT NOT NULL, lesson TEXT NOT NULL, sha256 TEXT NOT NULL,
    status TEXT NOT NULL, points INTEGER NOT NULL, max_points INTEGER NOT NULL, seconds REAL NOT NULL,
    notes TEXT NOT NULL, graded_at TEXT NOT NULL, version TEXT NOT NULL
);
CREATE TABLE results (
    source TEXT NOT NULL REFERENCES submissions ON DELETE CASCADE, exercise TEXT NOT NULL,
    outcome TEXT NOT NULL, message_id TEXT NOT NULL, points INTEGER NOT NULL, max_points INTEGER NOT NULL,
    seed INTEGER, error TEXT NOT NULL, feedback TEXT NOT NULL, PRIMARY KEY (source, exercise)
);
"""
_CANNOT_WRITE = Text(
    zh="无法写入文件夹 `{path}`：{error}。", en="The folder `{path}` cannot be written to: {error}."
)
_BROKEN = Text(
    zh="`{path}` 不是完好的成绩册：{error}。没有改动它；请把它移走，或用 `--out` 另选一个文件夹。",
    en="`{path}` is not a sound gradebook: {error}. It was left as it is; move it away, or choose another "
    "folder with `--out`.",
)
_FAILED = Text(
    zh="写入 `{path}` 失败：{error}。此前写入的成绩都还在。",
    en="Writing to `{path}` failed: {error}. All grades written before are still there.",
)


class Gradebook:
    """The grades in one folder. Used by one thread."""

    def __init__(self, folder: Path):
        """Open or begin the gradebook; CourseError where that cannot be, with nothing changed."""
        self.db, self.csv = folder / "grades.db", folder / "grades.csv"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise CourseError(_CANNOT_WRITE.format(path=folder, error=error.strerror)) from None
        try:
            self._open()
        except (sqlite3.Error, _Foreign) as error:
            raise CourseError(_BROKEN.format(path=self.db, error=error)) from None

    def _open(self) -> None:
        self._connection = sqlite3.connect(self.db, timeout=30)
        try:
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if version == 0 and tables == 0:
                self._connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
            elif version != VERSION:
                raise _Foreign(f"user_version {version}, expected {VERSION}")
            (health,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
            if health != "ok":
                raise _Foreign(health)
            self._connection.execute("PRAGMA foreign_keys = ON")
            with self._connection:  # a read-only file shows here, before anything has run
                self._connection.execute("DELETE FROM submissions WHERE 0")
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def graded(self) -> dict[str, str]:
        """The hash of every submission with a grade that stands; an error of the grader's own does not."""
        return dict(
            self._connection.execute(
                "SELECT source, sha256 FROM submissions WHERE status != ?", (Status.GRADER_ERROR.value,)
            )
        )

    def save(self, row: Row) -> None:
        """Write one submission, in place of an earlier one from the same path."""
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        notes = "\n".join(f"{note.zh} · {note.en}" for note in row.notes)
        with self._told(), self._connection as transaction:
            transaction.execute("DELETE FROM submissions WHERE source = ?", (row.source,))
            transaction.execute(
                f"INSERT INTO submissions VALUES ({', '.join('?' * 11)})",
                (
                    *(row.source, row.student, row.lesson, row.sha256, row.status.value, row.points),
                    *(row.max_points, round(row.seconds, 3), notes, now, hookedu.__version__),
                ),
            )
            transaction.executemany(
                f"INSERT INTO results VALUES ({', '.join('?' * 9)})",
                [
                    (
                        *(row.source, r.exercise, r.outcome, r.message_id, r.points, r.max_points),
                        *(r.seed, r.error, r.feedback),
                    )
                    for r in row.results
                ],
            )

    def write_csv(self) -> None:
        """Write grades.csv anew: a reader sees the old file or the new one, never half of it."""
        found = self._connection.execute(
            "SELECT source, exercise, points FROM results ORDER BY exercise"
        ).fetchall()
        exercises = sorted({exercise for _, exercise, _ in found})
        points = {(source, exercise): n for source, exercise, n in found}
        rows = self._connection.execute(
            "SELECT source, student, lesson, status, points, max_points, notes FROM submissions"
            " ORDER BY student, lesson, source"
        )
        with self._told():
            # With a byte order mark: without it Excel shows Chinese as nonsense.
            with tempfile.NamedTemporaryFile(
                "w", dir=self.csv.parent, delete=False, encoding="utf-8-sig", newline=""
            ) as new:
                write = csv.writer(new).writerow
                write(["student", "lesson", "status", "points", "max_points", *exercises, "notes", "source"])
                for source, student, lesson, status, total, of, notes in rows:
                    each = [points.get((source, exercise), "") for exercise in exercises]
                    write(
                        [
                            *(_cell(student), lesson, status, total, of, *each),
                            *(_cell(notes.replace("\n", "; ")), _cell(source)),
                        ]
                    )
            os.chmod(new.name, 0o644 & ~_umask())
            os.replace(new.name, self.csv)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise CourseError(_FAILED.format(path=self.db.parent, error=error)) from None


class _Foreign(Exception):
    """A SQLite file, but not a gradebook of this version."""


def _cell(text: str) -> str:
    """Text that a spreadsheet will not take for a formula."""
    return "'" + text if text[:1] in ("=", "+", "-", "@") else text


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
