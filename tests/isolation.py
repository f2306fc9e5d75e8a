"""Whether this machine can isolate submissions: tests that need it are marked `isolated`, and skipped where it cannot."""

import contextlib
from functools import cache

from hookedu.catalog import CourseError
from hookedu.grading.run.bubblewrap import Program
from hookedu.grading.run.sandbox import Sandbox


@cache
def tried() -> Program | str:
    """Return the bubblewrap program that works here, or the reason why none does."""
    try:
        with contextlib.closing(Sandbox(isolated=True, startup=60)) as sandbox:
            return sandbox.rehearse()[0]
    except CourseError as error:
        return error.says[0].en.partition(" On Linux")[0]  # without the advice for instructors


def why_not() -> str:
    """Return the reason in one line, "" where submissions can be isolated."""
    found = tried()
    return found if isinstance(found, str) else ""


def bwrap() -> str:
    """Return the path of the program that works here; only for tests that are marked."""
    found = tried()
    assert isinstance(found, Program), found
    return found.path
