"""Who handed in what: a folder, or a zip of it, as a list of submissions.

    STUDENT/LESSON.ipynb                           the plain layout
    submitted/STUDENT/ASSIGNMENT/NOTEBOOK.ipynb    nbgrader's; the course folder around it is passed over

The first folder of a path names the student. A zip is read in memory, member by member; nothing is extracted,
so that a path in it can do no harm. Links are never followed. Everything that looks like a notebook gets a
`Submission`, even where reading it will fail: a row with a reason is better than a silence.

When something was handed in is said by nbgrader's `timestamp.txt` beside the notebook, in nbgrader's layout alone:
there `nbgrader collect` and `zip_collect` wrote it, elsewhere it may be the student's own. Otherwise it is the time
of the file's last change; a zip keeps it without a zone, and it is taken as local.
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

MAX_BYTES = 20 * 2**20  # of one notebook
MAX_MEMBERS = 200_000  # of one zip
MAX_DEPTH = 5  # folders and the file: what lies deeper is no hand-in but, say, somebody's virtual environment

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
    """What lies behind a path."""

    read: Read
    submitted: When = lambda: None


@dataclass(frozen=True, slots=True)
class Submission:
    """One notebook of one student; `read()` gives its bytes or raises Unreadable, `submitted()` when it was handed
    in, with a time zone, or None."""

    source: str
    student: str
    read: Read
    submitted: When = lambda: None

    @property
    def stem(self) -> str:
        """The file's name without its ending."""
        return self.source.rsplit("/", 1)[-1].removesuffix(".ipynb")


def collect(folder: Path) -> tuple[list[Submission], list[str]]:
    """The submissions in a folder or zip, by path, and the notebooks that lie outside any student's folder.

    CourseError where there is nothing to grade.
    """
    if folder.is_dir():
        entries = dict(_in_folder(folder))
    elif folder.is_file():
        entries = dict(_in_zip(folder))  # of two members with one name the later counts, as when extracting
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
    """Whether a path is somebody's notebook: not hidden (so no checkpoints), not macOS's shadow of a file."""
    hidden = any((part.startswith(".") and part not in (".", "..")) or part == "__MACOSX" for part in parts)
    return parts[-1].endswith(".ipynb") and not hidden and len(parts) <= MAX_DEPTH + 2


def _unwrap(entries: dict[tuple[str, ...], _Entry], stem: str) -> dict[tuple[str, ...], _Entry]:
    """Paths from the students' folders on: without the zip's own folder and without nbgrader's.

    A first part "" marks a path that is not to be taken apart, a last part "" a link to a folder: of those only
    the students' own matter.
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
    """What nbgrader writes: "2015-02-02 14:58:23.948203 America/Los_Angeles", or UTC, or no zone at all."""
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
                path = os.path.join(place, name)  # as text: a Path takes several times the memory
                nbgrader = _nbgrader(folder.stem, parts)
                yield parts, _Entry(partial(_read_file, path), partial(_file_time, path, nbgrader))
        for name in names:
            if Path(place, name).is_symlink():  # not entered, but a student behind it is not forgotten either
                yield (*here, name, ""), _unreadable(_LINK)
    for error in closed:  # a folder that may not be entered: again the student is not forgotten
        yield (*Path(error.filename).relative_to(folder).parts, ""), _unreadable(_failed(error))


def _failed(error: OSError) -> Text:
    return _FAILED.format(error=error.strerror or type(error).__name__)


def _read_file(path: str) -> bytes:
    try:
        mode = os.lstat(path).st_mode
        if not stat.S_ISREG(mode):
            raise Unreadable(_LINK if stat.S_ISLNK(mode) else _NOT_A_FILE)
        # Between lstat and open the file may be swapped: no link is followed, no pipe waited for.
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
        pass  # none there
    return _modified(path)


def _modified(path: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(os.lstat(path).st_mtime), UTC)
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
            yield parts, _unreadable(_COMPRESSION)  # LZMA would take as much memory as the member asks for
        else:
            stamp = None
            if _nbgrader(path.stem, parts):
                stamp = stamps.get(member.filename.rpartition("/")[0])
            time = partial(_member_time, archive, member, stamp)
            yield parts, _Entry(partial(_read_member, archive, member), time)


def _member_name(member: zipfile.ZipInfo) -> str:
    """A member's name. Without the UTF-8 flag zipfile reads cp437, but Chinese Windows writes GBK there."""
    if not member.flag_bits & 0x800:
        for encoding in ("utf-8", "gb18030"):
            try:
                return member.filename.encode("cp437").decode(encoding)
            except UnicodeError:
                continue
    return member.filename


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    try:
        with archive.open(member) as file:  # what the header says about the size is not believed
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
        return datetime(*member.date_time).astimezone(UTC)  # naive, hence taken as local
    except (ValueError, OverflowError, OSError):
        return None
