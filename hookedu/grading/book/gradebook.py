"""The gradebook grades.db and access to it.

grades.db is an SQLite file with the tables that `schema` describes. Each submission is written in one transaction, so a run
that is stopped at any moment keeps what was finished. An older file is migrated when it is opened, in one transaction;
a newer one is left unchanged.

`points` are the judge's. The points that count, with adjustments and rules, are computed when they are shown
(`Gradebook.grades`). Rows graded from other folders are kept: one gradebook may serve a whole term.
"""

import contextlib
import datetime
import difflib
import itertools
import json
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

import hookedu
from hookedu.catalog import CourseError
from hookedu.exercises.feedback import Feedback
from hookedu.grading.book import written
from hookedu.grading.book.grades import Adjustment, Grade, Rules, weigh
from hookedu.grading.book.opening import connect
from hookedu.grading.rows import Result, Row, Status, Written
from hookedu.language import Text

_AS_THEY_ARE = ("source", "attempt", "student", "lesson", "sha256", "max_points", "seconds", "course")
_RESULT = "exercise, outcome, max_points, points, message_id, seed, error, feedback"
_CURRENT = "attempt = (SELECT max(attempt) FROM submissions WHERE source = s.source)"

_FOLLOWED = Text(
    zh="以前记在 `{before}` 名下的，现在记在 `{now}` 名下：文件夹里的东西多了，看得出是谁的了",
    en="What was kept under `{before}` is now kept under `{now}`: with more in the folder it shows whose it is",
)
_CANNOT_WRITE = Text(
    zh="无法写入文件夹 `{path}`：{error}。", en="The folder `{path}` cannot be written to: {error}."
)
_MISSING = Text(
    zh="`{path}` 里没有成绩册。先运行 `hookedu grade 提交的文件夹 --out {path}`。",
    en="There is no gradebook in `{path}`. Run `hookedu grade SUBMISSIONS --out {path}` first.",
)
_FAILED = Text(
    zh="写入 `{path}` 失败：{error}。此前写入的成绩都还在；处理好以后运行同一条命令，会接着做。",
    en="Writing to `{path}` failed: {error}. All grades written before are still there; mend it and run the same "
    "command again: it goes on from there.",
)
_STANDS = Text(zh="以前的成绩保持不变", en="the grade from before stands")
_UNKNOWN_STUDENT = Text(
    zh="成绩册里没有学生 `{student}` 的第 {lesson} 课。最接近的是：{near}。给什么都没交的学生登记分数：`adjust --new`。",
    en="The gradebook holds nothing by `{student}` for lesson {lesson}. The nearest: {near}. To credit somebody who handed "
    "in nothing: `adjust --new`.",
)
_NOBODY = Text(
    zh="成绩册里没有学生 `{student}`。最接近的是：{near}。",
    en="The gradebook holds no student `{student}`. The nearest: {near}.",
)
_SEVERAL = Text(
    zh="有学生对同一课交了不止一个文件（{who}，共 {n} 处）：按规则 `{rule}` 只算一个；可用 `--attempt last` 或 `best` 选择。",
    en="Students handed in more than one file for a lesson ({who}; {n} in all): one counts, by the rule `{rule}`; "
    "choose with `--attempt last` or `best`.",
)
_RENAMED = Text(
    zh="`{now}` 交的和成绩册里 `{before}` 的一模一样，而文件夹里已经没有 `{before}` 了。如果是改了名：手工改的分数还在 `{before}` "
    '名下，先用 `hookedu adjust` 给 `{now}` 登记，再运行 `hookedu forget {folder} "{before}"`；不然两个都算学生。',
    en="`{now}` handed in exactly what the gradebook holds by `{before}`, who is no longer in the folder. If that is a new "
    "name: points set by hand are still under `{before}`; set them for `{now}` with `hookedu adjust`, then run "
    '`hookedu forget {folder} "{before}"`, or both count as students.',
)
_COURSE_CHANGED = Text(
    zh="第 {lesson} 课在评分之后改过（涉及 {n} 份提交）；成绩保持不变，加上 `--again` 会重新评。",
    en="Lesson {lesson} has changed since it was graded (submissions: {n}); the grades stand, and `--again` grades "
    "anew.",
)


class Gradebook:
    """The gradebook of one folder, to be used by one thread.

    Parameters
    ----------
    folder : Path
        Folder of grades.db and of everything made from it.
    create : bool
        Create the folder and the file if they are missing.

    Raises
    ------
    CourseError
        If there is no gradebook and `create` is false, if the folder cannot be written to, or if the file cannot be
        used (see `opening.connect`). The file is left unchanged then.
    """

    def __init__(self, folder: Path, create: bool = True):
        self.folder, self.db, self.csv = folder, folder / "grades.db", folder / "grades.csv"
        try:
            if not create:
                self.db.stat()
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            if not create and isinstance(error, (FileNotFoundError, NotADirectoryError)):
                raise CourseError(_MISSING.format(path=folder)) from None
            raise CourseError(_CANNOT_WRITE.format(path=folder, error=error.strerror)) from None
        self._connection = connect(self.db)

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def graded(self, failed: bool = False) -> dict[str, str]:
        """Return the hash of every submission whose row stands (see `Status.stands`), by source; or of all of them."""
        rows = self._connection.execute(f"SELECT source, sha256, status FROM submissions s WHERE {_CURRENT}")
        return {source: sha for source, sha, status in rows if failed or Status(status).stands}

    def save(self, row: Row) -> Row:
        """Write one submission, and return it; with a note if it was not written, because the row from before stands.

        It replaces the last attempt of the same path if the content is the same, or if that attempt's content could not
        be read. Otherwise it becomes a further attempt. A folder that holds it is no longer one without a notebook.
        A defect of the grader says nothing about the content: it takes no verdict on the same content away.
        """
        with self.told(), self._connection as transaction:
            last = transaction.execute(
                f"SELECT attempt, sha256, status FROM submissions s WHERE source = ? AND {_CURRENT}",
                (row.source,),
            ).fetchone() or (0, None, Status.GRADER_ERROR)
            failed = row.status is Status.GRADER_ERROR and last[2] != Status.GRADER_ERROR
            if failed and row.sha256 and last[1] == row.sha256:
                return replace(row, notes=(*row.notes, _STANDS))
            attempt = last[0] if last[1] in ("", row.sha256) else last[0] + 1
            transaction.execute(
                "DELETE FROM submissions WHERE source = ? AND attempt = ?", (row.source, attempt)
            )
            # The student's folder, which may have been empty when it was looked at before.
            transaction.execute(
                "DELETE FROM submissions WHERE student = ? AND status = ? AND instr(?, source || '/') = 1",
                (row.student, Status.NO_NOTEBOOK.value, row.source),
            )
            transaction.execute(
                f"INSERT INTO submissions VALUES ({', '.join('?' * 15)})",
                (
                    *(row.source, attempt, row.student, row.lesson, row.sha256, _iso(row.submitted)),
                    *(row.status.value, row.points, row.max_points, round(row.seconds, 3)),
                    *(_dumps(row.notes), _now(), hookedu.__version__, row.course, _dumps(row.reached)),
                ),
            )
            transaction.executemany(
                f"INSERT INTO results VALUES ({', '.join('?' * 10)})",
                [
                    (
                        *(row.source, attempt, r.exercise, r.outcome, r.message_id, r.points, r.max_points),
                        *(r.seed, r.error, _dumps(r.feedback)),
                    )
                    for r in row.results
                ],
            )
            written.save(transaction, row, attempt)
        return row

    def follow(self, students: Mapping[str, str]) -> list[Text]:
        """Write under whose name each path is found now, and return remarks on the names that have changed.

        Whose a notebook is may show only when more of the class is there: `hw2/ann.ipynb` alone seems to be that of
        somebody called hw2. What was entered by hand follows where nothing is left under the name before.
        """
        with self.told(), self._connection as transaction:
            known = dict(transaction.execute("SELECT DISTINCT source, student FROM submissions"))
            changed = {s: (known[s], now) for s, now in students.items() if known.get(s, now) != now}
            for source, (_, now) in changed.items():
                transaction.execute("UPDATE submissions SET student = ? WHERE source = ?", (now, source))
            left = {name for (name,) in transaction.execute("SELECT student FROM submissions")}
            names = sorted({*changed.values()})
            for before, now in names:
                if before not in left:
                    transaction.execute("UPDATE adjustments SET student = ? WHERE student = ?", (now, before))
        return [_FOLLOWED.format(before=before, now=now) for before, now in names]

    def written(self, row: Row) -> Written | None:
        """Return what the learner wrote in an attempt, None if it was unreadable or graded before that was kept."""
        return written.load(self._connection, row)

    def holds(self, student: str, lesson: str) -> bool:
        """Whether there is anything by a student for a lesson."""
        found = self._connection.execute(
            "SELECT 1 FROM submissions WHERE student = ? AND lesson = ? LIMIT 1", (student, lesson)
        )
        return found.fetchone() is not None

    def require(self, student: str, lesson: str) -> None:
        """Raise CourseError, with the nearest names, if a student has submitted nothing for a lesson."""
        if not self.holds(student, lesson):
            rows = self._connection.execute("SELECT DISTINCT student, lesson FROM submissions").fetchall()
            names = sorted({name for name, of in rows if of == lesson} or {name for name, _ in rows})
            near = _nearest(student, names)
            raise CourseError(_UNKNOWN_STUDENT.format(student=student, lesson=lesson, near=near))

    def adjust(self, student: str, exercise: str, points: float | None, reason: str) -> None:
        """Set a student's points by hand; every change is kept.

        Parameters
        ----------
        student : str
            Name of the student's folder.
        exercise : str
            Id of an exercise, or of a lesson to set the points of all of it.
        points : float or None
            The points; None withdraws what was set before.
        reason : str
            The reason, which the student is going to read.

        Raises
        ------
        CourseError
            If the student has submitted nothing for that lesson, or the file cannot be written.
        """
        self.require(student, exercise.split(".")[0])
        with self.told(), self._connection as transaction:
            transaction.execute(
                "INSERT INTO adjustments (student, exercise, points, reason, made_at) VALUES (?, ?, ?, ?, ?)",
                (student, exercise, points, reason, _now()),
            )

    def forget(self, student: str) -> None:
        """Delete all that is known about a student, so that it cannot be recovered from the file.

        Raises
        ------
        CourseError
            If there is no student of that name, or the file cannot be written.
        """
        if student not in (names := self.students()):
            raise CourseError(_NOBODY.format(student=student, near=_nearest(student, names)))
        with self.told():
            with self._connection as transaction:
                # ON DELETE CASCADE deletes the results as well.
                transaction.execute("DELETE FROM submissions WHERE student = ?", (student,))
                transaction.execute("DELETE FROM adjustments WHERE student = ?", (student,))
            # Until this, rows that were deleted, or replaced by grading again, are still readable in the file.
            self._connection.execute("VACUUM")

    def rules(self) -> Rules:
        """Return the rules that turn attempts into grades."""
        rows = self._connection.execute("SELECT rule, lesson, value FROM rules")
        return Rules({(rule, lesson): value for rule, lesson, value in rows})

    def change_rules(self, by: Rules) -> None:
        """Add rules or replace existing ones; they hold until they are changed again."""
        rules = self.rules().changed(by)
        with self.told(), self._connection as transaction:
            transaction.execute("DELETE FROM rules")
            transaction.executemany(
                "INSERT INTO rules VALUES (?, ?, ?)", [(*k, v) for k, v in rules.texts.items()]
            )

    def grades(self, student: str | None = None) -> Iterator[Grade]:
        """Yield the grade of every attempt, or of one student's, ordered by student and lesson.

        Only the attempts of one student at one lesson are in memory at a time.
        """
        rules = self.rules()
        query = "SELECT exercise, points, reason, made_at FROM adjustments WHERE student = ? ORDER BY id"
        for _, rows in itertools.groupby(
            self._rows(student), lambda row: (row.student, row.lesson or row.source)
        ):
            group = list(rows)
            newest = {row[0]: row[1:] for row in self._connection.execute(query, (group[0].student,))}
            by_hand = {exercise: Adjustment(*a) for exercise, a in newest.items() if a[0] is not None}
            yield from weigh(group, by_hand, rules)

    def _rows(self, student: str | None) -> Iterator[Row]:
        submissions = self._connection.execute(
            "SELECT * FROM submissions WHERE student = coalesce(?, student)"
            " ORDER BY student, lesson, source, attempt",
            (student,),
        )
        submissions.row_factory = sqlite3.Row
        for row in submissions:
            results = self._connection.execute(
                f"SELECT {_RESULT} FROM results WHERE source = ? AND attempt = ? ORDER BY exercise",
                (row["source"], row["attempt"]),
            )
            yield Row(
                **{name: row[name] for name in _AS_THEY_ARE},
                status=Status(row["status"]),
                notes=tuple(_loads(row["notes"])),
                reached=tuple(_loads(row["reached"])),
                results=tuple(Result(*values, feedback=_feedback(said)) for *values, said in results),
                submitted=datetime.datetime.fromisoformat(row["submitted_at"])
                if row["submitted_at"]
                else None,
            )

    def students(self) -> list[str]:
        """Return the names of all students with a submission."""
        return [s for (s,) in self._connection.execute("SELECT DISTINCT student FROM submissions ORDER BY 1")]

    def exercises(self) -> list[str]:
        """Return the ids of all exercises with a result."""
        return [e for (e,) in self._connection.execute("SELECT DISTINCT exercise FROM results ORDER BY 1")]

    def remarks(self, courses: Mapping[str, str], present: Set[str] = frozenset()) -> list[Text]:
        """Return what an instructor should know about the grades as a whole.

        `courses` maps each lesson to its current fingerprint; `present` are the students in the folder that was graded.
        """
        found = []
        several = self._connection.execute(
            "SELECT student FROM submissions WHERE lesson != '' GROUP BY student, lesson"
            " HAVING count(DISTINCT source) > 1 ORDER BY student, lesson"
        ).fetchall()
        if several:
            who = ", ".join(student for (student,) in several[:3]) + (" …" if len(several) > 3 else "")
            rule = self.rules().of("attempt", "")
            found.append(_SEVERAL.format(n=len(several), who=who, rule=rule))
        older = self._connection.execute(
            f"SELECT lesson, course, count(*) FROM submissions s WHERE course != '' AND {_CURRENT} GROUP BY 1, 2"
        )
        counts: dict[str, int] = {}
        for lesson, fingerprint, n in older:
            if courses.get(lesson, fingerprint) != fingerprint:
                counts[lesson] = counts.get(lesson, 0) + n
        found += [_COURSE_CHANGED.format(lesson=lesson, n=n) for lesson, n in sorted(counts.items())]
        renamed = [
            _RENAMED.format(before=before, now=now, folder=self.folder)
            for before, now in self._renamed(present)
        ]
        return found + renamed

    def _renamed(self, present: Set[str]) -> list[tuple[str, str]]:
        """Return who is gone from the folder, and the one student there whose answers are the same to the byte."""
        rows = self._connection.execute(
            "SELECT DISTINCT sha256, student FROM submissions WHERE status = ? AND sha256 != ''",
            (Status.GRADED.value,),
        )
        of: dict[str, set[str]] = {}
        for sha, student in rows:
            of.setdefault(sha, set()).add(student)
        pairs = {(tuple(who - present), tuple(who & present)) for who in of.values()}
        return sorted((before[0], now[0]) for before, now in pairs if len(before) == len(now) == 1)

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Turn a failed write in this context into one CourseError that names the remedy."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise CourseError(_FAILED.format(path=self.db.parent, error=error)) from None


def _nearest(student: str, names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in difflib.get_close_matches(student, names, 3, 0.0)) or "–"


def _now() -> str:
    return _iso(datetime.datetime.now(datetime.UTC).replace(microsecond=0))


def _iso(when: datetime.datetime | None) -> str:
    return when.astimezone(datetime.UTC).isoformat() if when else ""


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=vars)  # Text and Feedback: objects of their fields


def _loads(text: str) -> Any:
    return json.loads(text, object_hook=lambda node: Text(**node) if node.keys() == {"zh", "en"} else node)


def _feedback(text: str) -> Feedback:
    node = _loads(text)
    return Feedback(tuple(map(tuple, node["table"])), node["traceback"], tuple(node["says"]))
