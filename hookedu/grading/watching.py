"""Grade what arrives in a folder, as long as the command runs, and keep the report current."""

import contextlib
import os
import signal
import threading
from datetime import datetime
from pathlib import Path

from rich.console import Console

from hookedu.catalog import CourseError
from hookedu.grading.batch import grade
from hookedu.grading.book.gradebook import Gradebook
from hookedu.grading.collect import NothingToGrade
from hookedu.grading.files import OutOfReach, entered
from hookedu.grading.out import pages
from hookedu.language import Text

EVERY = 5.0  # seconds between two looks at the folder
PATIENCE = 6  # looks after which a folder is graded in which something changes all the time

_WAITING = Text(
    zh="{time}：正在看着 `{folder}`，有新的就评；Ctrl-C 结束",
    en="{time}: watching `{folder}`; whatever arrives is graded; Ctrl-C ends it",
)
_NOT_NOW = Text(zh="{time}：{reason}", en="{time}: {reason}")


def watch(
    folder: Path,
    out: Path,
    *,
    console: Console | None = None,
    **options: object,
) -> None:
    """Grade a folder whenever something in it has changed, and write the report after it.

    A file that is still being written is left until it no longer changes, for half a minute at most, so that one that
    never rests does not keep the class waiting: what it holds then is graded, and again once it has changed. A shared
    folder that is gone for a while is waited for. What ended in a timeout, out of memory or a grader error is tried again
    once, when the command starts. Ctrl-C, or a kill, loses nothing: the same command goes on where it stopped.

    Parameters
    ----------
    folder, out : Path
        As for `grade`; the folder may still be empty.
    console : Console, optional
        Where progress and tables are printed; the standard output by default.
    **options
        Passed to `grade`.

    Raises
    ------
    CourseError
        If the folder or the gradebook cannot be used.
    KeyboardInterrupt
        On SIGINT or SIGTERM.
    """
    console, stopping = console or Console(), threading.Event()

    def stop(*_: object) -> None:
        stopping.set()  # an exception alone may get lost, in a callback of a library say
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    graded: object = None  # the state of the folder that the grades are of
    before: object = None
    restless = 0  # looks in a row that found something changed
    console.print(str(_WAITING.format(time=_clock(), folder=folder)), markup=False, soft_wrap=True)
    while not stopping.is_set():
        now = _state(folder, out)
        restless = 0 if now == before else restless + 1
        if now != graded and (restless == 0 or before is None or restless >= PATIENCE):
            restless = 0
            try:
                grade(folder, out, console=console, retry=graded is None, **options)  # type: ignore[arg-type]
            except CourseError as error:
                gone = graded is not None and isinstance(error, OutOfReach)
                if not (gone or isinstance(error, NothingToGrade)):
                    raise
                reason = _NOT_NOW.format(time=_clock(), reason=str(error.says[0]))
                console.print(str(reason), markup=False, soft_wrap=True)
            else:
                with contextlib.closing(Gradebook(out, create=False)) as book:
                    pages.write(book)
            graded = now
        before = now
        stopping.wait(EVERY)


def _state(folder: Path, out: Path) -> frozenset[tuple[str, int, int]]:
    """Return what differs from one state of a folder to another: each file's path, size and time, but of those in `out`."""
    found = set()
    for place, names, files in entered(folder, out, []):
        for name in (*files, *names):
            path = os.path.join(place, name)
            with contextlib.suppress(OSError):  # it has just gone
                facts = os.lstat(path)
                found.add((path, facts.st_size if name in files else 0, facts.st_mtime_ns))
    return frozenset(found)


def _clock() -> str:
    return datetime.now().astimezone().strftime("%H:%M:%S")
