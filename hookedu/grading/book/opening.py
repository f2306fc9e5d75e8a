"""Open grades.db: make it, bring an older one up to date, and say why one cannot be used."""

import json
import sqlite3
from pathlib import Path

from hookedu.catalog import CourseError
from hookedu.exercises.feedback import Feedback
from hookedu.grading.book import schema
from hookedu.grading.book.schema import VERSION
from hookedu.language import Text

_PATIENCE = 30.0  # seconds for another program to let go of the file
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
# What is the matter with the place of a file or the access to it, not with what is in it.
_PLACE = (
    *(sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM),
    *(sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL),
)
_PRIMARY = 0xFF  # the bits of SQLite's error code that tell the kind

_IN_USE = Text(
    zh="`{path}` 正被另一个程序占用（{error}），也许是另一个 hookedu，或打开着它的数据库软件。没有改动它；等那边结束或关掉，"
    "再运行同一条命令。",
    en="`{path}` is in use by another program ({error}), another hookedu perhaps, or a database browser. It was left as it "
    "is; wait for that to end or close it, then run the same command again.",
)
_NO_ACCESS = Text(
    zh="`{path}` 不能读写：{error}。没有改动它；请检查它和它所在文件夹的权限、磁盘的剩余空间，再运行同一条命令。",
    en="`{path}` cannot be read and written: {error}. It was left as it is; see to its permissions, those of its folder "
    "and the space on the disk, then run the same command again.",
)
_BROKEN = Text(
    zh="`{path}` 不是完好的成绩册：{error}。没有改动它；请把它移走，或用 `--out` 另选一个文件夹。",
    en="`{path}` is not a sound gradebook: {error}. It was left as it is; move it away, or choose another "
    "folder with `--out`.",
)
_ANOTHERS = Text(zh="它是另一个程序的数据库", en="it is another program's database")
_NEWER = Text(
    zh="`{path}` 来自更新的 hookedu（版本 {found}，这里只认到 {known}）。没有改动它；请更新 hookedu。",
    en="`{path}` comes from a newer hookedu (version {found}; this one knows up to {known}). It was left as it is; "
    "update hookedu.",
)


def connect(db: Path) -> sqlite3.Connection:
    """Open a gradebook, which is created if it is missing.

    Raises
    ------
    CourseError
        If another program keeps it locked, if it cannot be read and written, is not a sound gradebook or comes from a
        newer version. Only the third is a reason to move it away: a gradebook that is merely busy holds grades.
    """
    try:
        return _connected(db)
    except _Foreign as error:
        says = _BROKEN.format(path=db, error=error.args[0])
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY
        says = _IN_USE if code in _BUSY else _NO_ACCESS if code in _PLACE else _BROKEN
        says = says.format(path=db, error=error)
    raise CourseError(says)


def _connected(db: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(db, timeout=_PATIENCE)
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if version > VERSION:
            raise CourseError(_NEWER.format(path=db, found=version, known=VERSION))
        if names and (version < 1 or not {"submissions", "results"} <= names):
            raise _Foreign(_ANOTHERS)
        (health,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if health != "ok":
            raise _Foreign(health)
        if version < VERSION:
            _bring_up_to_date(connection, version)
        connection.execute("PRAGMA foreign_keys = ON")
        with connection:  # fails on a read-only file now, before anything has run
            connection.execute("DELETE FROM submissions WHERE 0")
    except BaseException:
        connection.close()
        raise
    return connection


def _bring_up_to_date(connection: sqlite3.Connection, version: int) -> None:
    connection.create_function("notes_of_1", 1, _notes_of_1)
    connection.create_function(
        "feedback_of_1", 1, lambda text: json.dumps(vars(Feedback(traceback=text)), ensure_ascii=False)
    )
    steps = [schema.MIGRATIONS[n] for n in range(version, VERSION)] if version else [schema.SCHEMA]
    connection.executescript(f"BEGIN EXCLUSIVE; {' '.join(steps)} PRAGMA user_version = {VERSION}; COMMIT;")


class _Foreign(Exception):
    """Raised with the reason (a str or Text) for an SQLite file that is not a sound gradebook."""


def _notes_of_1(notes: str) -> str:
    sides = [line.partition(" · ") for line in notes.splitlines()]
    return json.dumps([{"zh": zh, "en": en or zh} for zh, _, en in sides], ensure_ascii=False)
