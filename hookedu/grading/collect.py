"""List the submissions in a folder, or in a zip of such a folder.

    STUDENT/LESSON.ipynb                           the plain layout
    submitted/STUDENT/ASSIGNMENT/NOTEBOOK.ipynb    nbgrader's layout; the course folder around it is skipped

The first folder of a path names the student. A zip is read in memory, member by member; nothing is extracted, so a
path in it can do no harm. Symbolic links are never followed. Everything that looks like a notebook becomes a
`Submission`, even if reading it is going to fail: a row with a reason is better than a missing row.

The time of submission comes from nbgrader's `timestamp.txt` beside the notebook, but only in nbgrader's layout: there
`nbgrader collect` and `zip_collect` wrote it, elsewhere it may be the student's own. Otherwise it is the file's
modification time; a zip stores that without a time zone, and it is taken as local time.
"""

import contextlib
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hookedu.catalog import CourseError
from hookedu.grading.rows import Unreadable, clean
from hookedu.language import Text

MAX_BYTES = 256 * 2**20  # per notebook, plots included; see `reading` for what is left without them
MAX_MEMBERS = 200_000  # per zip
MAX_DEPTH = 5  # folders plus the file; anything deeper belongs to, say, a virtual environment

_TOO_LARGE = Text(
    zh="文件超过 {mib} MiB，没有读取", en="the file is larger than {mib} MiB and was not read"
).format(mib=MAX_BYTES // 2**20)
_LINK = Text(zh="这是一个链接，不是文件；不跟随链接", en="this is a link, not a file; links are not followed")
_NOT_A_FILE = Text(zh="这不是普通文件", en="this is not an ordinary file")
_BAD_PATH = Text(zh="压缩包里的路径不合规", en="its path in the zip is not allowed")
_COMPRESSION = Text(zh="压缩方法不受支持", en="compressed in a way that is not read")
_FAILED = Text(zh="读取失败：{error}", en="reading failed: {error}")
_LAYOUT = Text(
    zh="应当是 `学生/课程.ipynb`，或 nbgrader 的 `submitted/学生/作业/笔记本.ipynb`",
    en="expected `STUDENT/LESSON.ipynb` or nbgrader's `submitted/STUDENT/ASSIGNMENT/NOTEBOOK.ipynb`",
)

Read = Callable[[], bytes]
When = Callable[[], datetime | None]


@dataclass(frozen=True, slots=True)
class _Entry:
    """Accessors for the file at one path."""

    read: Read
    submitted: When = lambda: None


@dataclass(frozen=True, slots=True)
class Submission:
    """One notebook of one student, not yet read.

    Attributes
    ----------
    source : str
        Path inside the folder or zip.
    student : str
        Name of the student's folder.
    read : callable
        Returns the notebook's bytes; raises Unreadable if that is not possible.
    submitted : callable
        Returns the time of submission, with a time zone, or None if unknown.
    """

    source: str
    student: str
    read: Read
    submitted: When = lambda: None

    @property
    def stem(self) -> str:
        """File name without its suffix."""
        return self.source.rsplit("/", 1)[-1].removesuffix(".ipynb")


def collect(folder: Path) -> tuple[list[Submission], list[str]]:
    """Return the submissions in a folder or zip, sorted by path, and the notebooks outside any student's folder.

    Raises
    ------
    CourseError
        If the path does not exist, is neither a folder nor a readable zip, holds more members than MAX_MEMBERS, or
        contains no notebook to grade.
    """
    if folder.is_dir():
        entries = dict(_in_folder(folder))
    elif folder.is_file():
        entries = dict(_in_zip(folder))  # of equally named members the last one counts, as when extracting
    else:
        raise CourseError(Text(zh="找不到 `{path}`。", en="There is no `{path}`.").format(path=folder))
    entries = _unwrap(entries, folder.stem)
    submissions = [
        Submission(
            clean("/".join(parts).strip("/")), clean(parts[0] or parts[1]), entry.read, entry.submitted
        )
        for parts, entry in sorted(entries.items(), key=lambda item: item[0])
        if len(parts) > 1
    ]
    if not submissions:
        raise CourseError(
            Text(
                zh="`{path}` 里没有可以评分的笔记本：{layout}。",
                en="There are no notebooks to grade in `{path}`: {layout}.",
            ).format(path=folder, layout=_LAYOUT)
        )
    return submissions, [clean(parts[0]) for parts in entries if len(parts) == 1]


def _wanted(parts: tuple[str, ...]) -> bool:
    """Check whether a path is a student's notebook: not hidden (so no checkpoint), not a resource fork of macOS."""
    hidden = any((part.startswith(".") and part not in (".", "..")) or part == "__MACOSX" for part in parts)
    return parts[-1].endswith(".ipynb") and not hidden and len(parts) <= MAX_DEPTH + 2


def _unwrap(entries: dict[tuple[str, ...], _Entry], stem: str) -> dict[tuple[str, ...], _Entry]:
    """Strip the zip's own top folder and nbgrader's folders, so that every path starts with the student's folder.

    An empty first part marks a path that must not be taken apart. An empty last part marks a folder that cannot be
    entered (a link, or one without permission); of those only the students' own folders matter.
    """
    kept = {parts: entry for parts, entry in entries.items() if not parts[0] and len(parts) > 1}
    entries = {parts: entry for parts, entry in entries.items() if parts[0]}
    if all(len(parts) > 2 and parts[0] == stem for parts in entries):
        entries = {parts[1:]: entry for parts, entry in entries.items()}
    if any(parts[0] == "submitted" and len(parts) > 2 for parts in entries):
        entries = {parts[1:]: entry for parts, entry in entries.items() if parts[0] == "submitted"}
    return kept | {
        parts: entry
        for parts, entry in entries.items()
        if len(parts) <= MAX_DEPTH and (parts[-1] or len(parts) == 2)
    }


def _unreadable(says: Text) -> _Entry:
    return _Entry(partial(_refuse, says))


def _refuse(says: Text) -> NoReturn:
    raise Unreadable(says)


def _nbgrader(stem: str, parts: tuple[str, ...]) -> bool:
    return "submitted" in (stem, *parts[:2])


def _timestamp(text: bytes) -> datetime | None:
    """Parse nbgrader's format: "2015-02-02 14:58:23.948203 America/Los_Angeles", or with UTC, or without a zone."""
    day, clock, zone = (*text.decode("ascii", "replace").split(), "", "", "")[:3]
    try:
        local = datetime.fromisoformat(f"{day} {clock}").replace(tzinfo=ZoneInfo(zone or "UTC"))
        return local.astimezone(UTC)
    except (ValueError, OverflowError, OSError, ZoneInfoNotFoundError):
        return None


def _in_folder(folder: Path) -> Iterator[tuple[tuple[str, ...], _Entry]]:
    closed: list[OSError] = []
    for place, names, files in os.walk(folder, onerror=closed.append):
        here = Path(place).relative_to(folder).parts
        names[:] = (
            [n for n in names if not n.startswith(".") and n != "__MACOSX"] if len(here) <= MAX_DEPTH else []
        )
        for name in files:
            parts = (*here, name)
            if _wanted(parts):
                path = os.path.join(place, name)  # a str, because a Path takes several times the memory
                nbgrader = _nbgrader(folder.stem, parts)
                yield parts, _Entry(partial(_read_file, path), partial(_file_time, path, nbgrader))
        for name in names:
            if Path(place, name).is_symlink():  # not followed, but the student still gets a row
                yield (*here, name, ""), _unreadable(_LINK)
    for error in closed:  # a folder without permission to enter: here too the student still gets a row
        yield (*Path(error.filename).relative_to(folder).parts, ""), _unreadable(_failed(error))


def _failed(error: OSError) -> Text:
    return _FAILED.format(error=error.strerror or type(error).__name__)


def _read_file(path: str) -> bytes:
    try:
        facts = os.lstat(path)
        if not stat.S_ISREG(facts.st_mode):
            raise Unreadable(_LINK if stat.S_ISLNK(facts.st_mode) else _NOT_A_FILE)
        if facts.st_size > MAX_BYTES:
            raise Unreadable(_TOO_LARGE)
        # The file may be replaced between lstat and open, hence flags that follow no link and wait for no pipe.
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with os.fdopen(os.open(path, flags), "rb") as file:
            return _limited(file.read(MAX_BYTES + 1))
    except OSError as error:
        raise Unreadable(_failed(error)) from None


def _file_time(path: str, nbgrader: bool) -> datetime | None:
    stamp = os.path.join(os.path.dirname(path), "timestamp.txt")
    try:
        if nbgrader and stat.S_ISREG(os.lstat(stamp).st_mode):
            with open(stamp, "rb") as file:
                return _timestamp(file.read(100)) or _modified(path)
    except OSError:
        pass  # no timestamp.txt
    return _modified(path)


def _modified(path: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(os.lstat(path).st_mtime, UTC)
    except (OSError, ValueError, OverflowError):
        return None


def _limited(data: bytes) -> bytes:
    if len(data) > MAX_BYTES:
        raise Unreadable(_TOO_LARGE)
    return data


def _in_zip(path: Path) -> Iterator[tuple[tuple[str, ...], _Entry]]:
    try:
        archive = zipfile.ZipFile(path)
        members = archive.infolist()
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise CourseError(
            Text(
                zh="`{path}` 既不是文件夹，也不是能读的 zip 文件：{error}。",
                en="`{path}` is neither a folder nor a zip that can be read: {error}.",
            ).format(path=path, error=error)
        ) from None
    if len(members) > MAX_MEMBERS:
        raise CourseError(
            Text(
                zh="`{path}` 里有 {n} 个文件，最多只读 {of} 个。",
                en="`{path}` holds {n} files; at most {of} are read.",
            ).format(path=path, n=len(members), of=MAX_MEMBERS)
        )
    stamps = {m.filename.rpartition("/")[0]: m for m in members if m.filename.endswith("/timestamp.txt")}
    for member in members:
        name = _member_name(member)
        parts = tuple(part for part in name.split("/") if part)
        if not parts or member.is_dir() or not _wanted(parts):
            continue
        if name.startswith("/") or "\\" in name or ":" in parts[0] or {".", ".."} & set(parts):
            yield ("", name), _unreadable(_BAD_PATH)
        elif stat.S_ISLNK(member.external_attr >> 16):
            yield parts, _unreadable(_LINK)
        elif member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            yield parts, _unreadable(_COMPRESSION)  # LZMA allocates as much memory as the member asks for
        else:
            stamp = None
            if _nbgrader(path.stem, parts):
                stamp = stamps.get(member.filename.rpartition("/")[0])
            time = partial(_member_time, archive, member, stamp)
            yield parts, _Entry(partial(_read_member, archive, member), time)


def _member_name(member: zipfile.ZipInfo) -> str:
    """Decode a member's name: without the UTF-8 flag zipfile assumes cp437, but Chinese Windows writes GBK."""
    if not member.flag_bits & 0x800:
        for encoding in ("utf-8", "gb18030"):
            try:
                return member.filename.encode("cp437").decode(encoding)
            except UnicodeError:
                continue
    return member.filename


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    try:
        with archive.open(member) as file:  # the size in the header is not trusted
            return _limited(file.read(MAX_BYTES + 1))
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        # RuntimeError: encrypted
        raise Unreadable(_FAILED.format(error=clean(str(error))[:200])) from None


def _member_time(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, stamp: zipfile.ZipInfo | None
) -> datetime | None:
    if stamp:
        with contextlib.suppress(Unreadable):
            if found := _timestamp(_read_member(archive, stamp)[:100]):
                return found
    try:
        return datetime(*member.date_time).astimezone(UTC)  # naive, so taken as local time
    except (ValueError, OverflowError, OSError):
        return None
