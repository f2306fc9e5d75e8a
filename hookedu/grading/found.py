"""One file that was handed in: what it is, by its name and first bytes, and its bytes, read without trusting it."""

import contextlib
import json
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from functools import partial
from typing import IO, NoReturn

from hookedu.grading.cleaning import clean
from hookedu.grading.rows import Status, Unreadable
from hookedu.language import Text

MAX_BYTES = 256 * 2**20  # per notebook, plots included; see `reading` for what is left without them
HEAD = 4096  # bytes that are read to see whether a file is a notebook

_TOO_LARGE = Text(
    zh="文件超过 {mib} MiB，没有读取", en="the file is larger than {mib} MiB and was not read"
).format(mib=MAX_BYTES // 2**20)
LINK = Text(zh="这是一个链接，不是文件；不跟随链接", en="this is a link, not a file; links are not followed")
_NOT_A_FILE = Text(zh="这不是普通文件", en="this is not an ordinary file")
_FAILED = Text(zh="读取失败：{error}", en="reading failed: {error}")
_ARCHIVE = Text(
    zh="这种压缩包打不开；请解压，或者让学生交 zip",
    en="an archive of a kind that is not read; unpack it, or have it handed in as a zip",
)

_NOTEBOOK = re.compile(r"\.ipynb(\.(txt|json))?$", re.IGNORECASE)  # mail and learning platforms add suffixes
_ARCHIVES = re.compile(r"\.(rar|7z|tar|tgz|gz|bz2|xz|zst)$", re.IGNORECASE)
# "hw.zip (1)", or a name without a suffix.
_PERHAPS_ZIP = re.compile(r"\.zip\W*+\w*+\W*+$|^[^.]*$", re.IGNORECASE)
NOISE = frozenset(("__MACOSX", "__pycache__", "site-packages", "node_modules"))
NOISE_FILES = frozenset(("thumbs.db", "desktop.ini"))

Parts = tuple[str, ...]
Read = Callable[[], bytes]
When = Callable[[], datetime | None]


class FileKind(Enum):
    """What a path leads to, as far as a submission is concerned."""

    NOTEBOOK = auto()
    BROKEN = auto()  # may hold a notebook, but cannot be opened: reading it reports why
    OTHER = auto()
    FOLDER = auto()  # has nothing in it


@dataclass(frozen=True, slots=True)
class Found:
    """One file, or one empty folder.

    Attributes
    ----------
    parts : tuple of str
        Its path below the folder or zip. A first part of "" marks a path that must not be taken apart.
    kind : FileKind
        What it is.
    read : callable
        Returns the bytes; raises Unreadable with the reason if that is not possible.
    time : callable
        Returns when it was last changed, with a time zone, or None if unknown.
    zips : tuple of (int, callable)
        For each zip around it, outermost first: the number of parts of the zip's own path, and the time of the zip.
    """

    parts: Parts
    kind: FileKind
    read: Read
    time: When = lambda: None
    zips: tuple[tuple[int, When], ...] = ()


def wanted(parts: Parts) -> bool:
    """Check whether a path may be a submission's: nothing in it is hidden or left there by a system or a program."""
    hidden = any((part.startswith(".") and part not in (".", "..")) or part in NOISE for part in parts)
    return not hidden and parts[-1].lower() not in NOISE_FILES and not parts[-1].startswith("~$")


def is_zip(name: str, head: Read) -> bool:
    """Check whether a file is a zip, by its name; where that leaves it open, by its first bytes."""
    if name.lower().endswith(".zip"):
        return True
    if not _PERHAPS_ZIP.search(name):
        return False
    with contextlib.suppress(Unreadable):
        return head().startswith(b"PK\3\4")
    return False


def _kind(name: str, head: Read) -> FileKind:
    """Return what a file is, by its name; where that says nothing, by its first bytes: browsers and people rename."""
    if _NOTEBOOK.search(name):
        return FileKind.NOTEBOOK
    if _ARCHIVES.search(name):
        return FileKind.BROKEN
    with contextlib.suppress(Unreadable):
        start = head()
        text = start.decode(json.detect_encoding(start), "replace").lstrip("\ufeff \t\r\n")
        if text[:1] == "{" and re.search(r'"(cells|nbformat|worksheets)"\s*:', text):
            return FileKind.NOTEBOOK
    return FileKind.OTHER


def identified(
    parts: Parts, head: Read, read: Read, time: When, zips: tuple[tuple[int, When], ...] = ()
) -> Found:
    """Return a file with its kind; `read` is not called here, and `head` returns its first bytes."""
    kind = _kind(parts[-1], head)
    return Found(parts, kind, partial(refuse, _ARCHIVE) if kind is FileKind.BROKEN else read, time, zips)


def broken(parts: Parts, says: Text) -> Found:
    """Return what stands for a file or folder that cannot be opened."""
    return Found(parts, FileKind.BROKEN, partial(refuse, says))


def refuse(says: Text, status: Status = Status.UNREADABLE) -> NoReturn:
    """Raise Unreadable: what reads a file that cannot be read."""
    raise Unreadable(says, status)


def failed(error: BaseException) -> Text:
    """Return the reason for people why reading failed."""
    said = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return _FAILED.format(error=clean(said)[:200])


def opened(path: str) -> IO[bytes]:
    """Open a regular file; raise Unreadable if it is anything else."""
    try:
        facts = os.lstat(path)
        if not stat.S_ISREG(facts.st_mode):
            raise Unreadable(LINK if stat.S_ISLNK(facts.st_mode) else _NOT_A_FILE)
        # The file may be replaced between lstat and open, hence flags that follow no link and wait for no pipe.
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        return os.fdopen(os.open(path, flags), "rb")
    except OSError as error:
        raise Unreadable(failed(error)) from None


def read_file(path: str, head: int = 0) -> bytes:
    """Return the bytes of a regular file, or its first `head` ones; raise Unreadable if that is not possible."""
    with opened(path) as file:
        try:
            if not head:
                check_size(os.fstat(file.fileno()).st_size)
            return read_limited(file, head)
        except OSError as error:
            raise Unreadable(failed(error)) from None


def read_limited(file: IO[bytes], head: int) -> bytes:
    """Return the first `head` bytes of a file, or all of them; raise Unreadable if these are too many."""
    data = file.read(head or MAX_BYTES + 1)
    check_size(len(data))
    return data


def check_size(size: int) -> None:
    """Raise Unreadable if a file of so many bytes is not read."""
    if size > MAX_BYTES:
        raise Unreadable(_TOO_LARGE)


def modified(path: str) -> datetime | None:
    """Return when a file was last changed, None if that is unknown."""
    try:
        return datetime.fromtimestamp(os.lstat(path).st_mtime, UTC)
    except (OSError, ValueError, OverflowError):
        return None
