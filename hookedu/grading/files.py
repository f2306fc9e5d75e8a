"""Find the files in a folder or zip of submissions, also in zips within it, without extracting or trusting any.

A zip is read member by member; nothing is extracted to a path of its choosing, so a path in it can do no harm. A zip
inside is unpacked into a nameless temporary file for as long as it is read. Symbolic links are never followed.
"""

import contextlib
import os
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO

from hookedu.catalog import CourseError
from hookedu.grading.cleaning import clean
from hookedu.grading.found import (
    HEAD,
    LINK,
    NOISE,
    FileKind,
    Found,
    Parts,
    When,
    broken,
    check_size,
    failed,
    identified,
    is_zip,
    modified,
    opened,
    read_file,
    read_limited,
    wanted,
)
from hookedu.grading.rows import Unreadable
from hookedu.language import Text

MAX_MEMBERS = 200_000  # per zip, with the zips within it
MAX_DEPTH = 30  # folders in each other
_MAX_UNPACKED = 4 * 2**30  # bytes of the zips within one zip
_MAX_ZIPS = 3  # zips in each other
_KEPT_OPEN = 50  # members from which on a zip within another is unpacked once, not for each notebook
_SPOOL = 8 * 2**20  # bytes of an unpacked zip that stay in memory rather than in a temporary file
_ENCRYPTED = 0x1  # the bit of a member's flags

_NOWHERE = Text(zh="找不到 `{path}`。", en="There is no `{path}`.")
_NO_FILE = Text(
    zh="`{path}` 既不是文件夹，也不是 zip 文件。", en="`{path}` is neither a folder nor a zip file."
)
_CLOSED = Text(zh="`{path}` 打不开：{error}。", en="`{path}` cannot be opened: {error}.")
_BAD_PATH = Text(zh="压缩包里的路径不合规", en="its path in the zip is not allowed")
_COMPRESSION = Text(zh="压缩方法不受支持", en="compressed in a way that is not read")
_LOCKED = Text(zh="压缩包加了密码", en="it is protected by a password in its zip")
_TOO_DEEP = Text(zh="文件夹套得太深，没有进去", en="too many folders in each other; not entered")
_BAD_ZIP = Text(zh="这个 zip 打不开：{error}", en="this zip cannot be read: {error}")
_ZIPS = Text(
    zh="压缩包套得太深，或者里面的文件太多、太大，没有打开；请先解压",
    en="too many zips in each other, or too much in them; unpack it first",
)
_DAMAGED = (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, NotImplementedError)


class OutOfReach(CourseError):
    """A folder or zip that is not there or does not open, at the moment perhaps."""


def find(place: Path, without: Path | None = None) -> Iterator[Found]:
    """Yield every file of interest in a folder or zip.

    Hidden files are skipped, and with them Jupyter's checkpoints, what systems and environments leave in folders, and the
    folder `without`.

    Raises
    ------
    OutOfReach
        If the path does not exist or cannot be opened.
    CourseError
        If it is neither a folder nor a readable zip, or holds more members than MAX_MEMBERS.
    """
    try:
        mode = place.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise OutOfReach(_NOWHERE.format(path=place)) from None
    except OSError as error:  # its name is too long, a folder around it is closed, a share does not answer
        raise OutOfReach(_CLOSED.format(path=place, error=error.strerror)) from None
    if stat.S_ISDIR(mode):
        return _in_folder(place, without)
    if not stat.S_ISREG(mode):
        raise CourseError(_NO_FILE.format(path=place))
    archive = _Zip(partial(open, place, "rb"))
    try:
        archive.keep()
    except _DAMAGED as error:
        raise CourseError(
            Text(
                zh="`{path}` 既不是文件夹，也不是能读的 zip 文件：{error}。",
                en="`{path}` is neither a folder nor a zip that can be read: {error}.",
            ).format(path=place, error=error)
        ) from None
    if (members := len(archive.members())) > MAX_MEMBERS:
        raise CourseError(
            Text(
                zh="`{path}` 里有 {n} 个文件，最多只读 {of} 个。",
                en="`{path}` holds {n} files; at most {of} are read.",
            ).format(path=place, n=members, of=MAX_MEMBERS)
        )
    return _in_zip(archive, (), (), ())


# --- folders ---------------------------------------------------------------------------------------------------


def entered(
    folder: Path, without: Path | None, closed: list[OSError]
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk through a folder as `os.walk` does, but not into hidden folders or `without`, be it named by another path.

    A link to it that somebody else has made is a link like others.
    """
    own = (
        {os.path.realpath(without), os.path.join(os.path.realpath(without.parent), without.name)}
        if without
        else ()
    )
    for place, names, files in os.walk(folder, onerror=closed.append):
        real = os.path.realpath(place)
        names[:] = [n for n in names if not n.startswith(".") and os.path.join(real, n) not in own]
        yield place, names, files


def _in_folder(folder: Path, without: Path | None) -> Iterator[Found]:
    closed: list[OSError] = []
    for place, names, files in entered(folder, without, closed):
        here = Path(place).relative_to(folder).parts
        names[:] = [name for name in names if name not in NOISE]
        files = [name for name in files if wanted((name,))]
        if len(here) > MAX_DEPTH:
            yield broken((*here, ""), _TOO_DEEP)
            names.clear()
            continue
        if here and not names and not files:
            yield Found((*here, ""), FileKind.FOLDER, bytes)
        for name in files:
            # A str, because a Path takes several times the memory.
            yield from _file((*here, name), os.path.join(place, name))
        for name in names:
            # Not followed, but the student still gets a row. `Path.is_symlink` would raise where the path is too long.
            if os.path.islink(os.path.join(place, name)):
                yield broken((*here, name, ""), LINK)
    for error in closed:  # a folder without permission to enter: here too the student still gets a row
        if Path(error.filename) == folder:  # nobody's: the whole class is out of reach
            raise OutOfReach(_CLOSED.format(path=folder, error=error.strerror))
        yield broken((*Path(error.filename).relative_to(folder).parts, ""), failed(error))


def _file(parts: Parts, path: str) -> Iterator[Found]:
    time, head = partial(modified, path), partial(read_file, path, HEAD)
    if is_zip(parts[-1], head):
        archive = _Zip(partial(opened, path))
        yield from _within(archive, parts, ((len(parts), time),), (_Budget(),))
        return
    yield identified(parts, head, partial(read_file, path), time)


# --- zips ------------------------------------------------------------------------------------------------------


class _Zip:
    """A zip that is opened when something is read from it, so that a class of zips holds no file open."""

    def __init__(self, open: Callable[[], IO[bytes]]) -> None:
        self._open = open
        self._kept: zipfile.ZipFile | None = None

    def keep(self) -> None:
        """Open it now and keep it open: its list of members is read once."""
        self._kept = zipfile.ZipFile(self._open())

    @contextlib.contextmanager
    def opened(self) -> Iterator[zipfile.ZipFile]:
        if self._kept:
            yield self._kept
        else:
            with self._open() as file, zipfile.ZipFile(file) as archive:
                yield archive

    def members(self) -> list[zipfile.ZipInfo]:
        with self.opened() as archive:
            return archive.infolist()

    def read(self, member: zipfile.ZipInfo, head: int = 0) -> bytes:
        """Return the bytes of a member, or the first `head` of them; a size in its header is relied on only if it is too large."""
        if member.flag_bits & _ENCRYPTED:
            raise Unreadable(_LOCKED)
        if not head:
            check_size(member.file_size)  # two hundred bombs would be minutes of unpacking
        try:
            with self.opened() as archive, archive.open(member) as file:
                return read_limited(file, head)
        except _DAMAGED as error:
            raise Unreadable(failed(error)) from None

    def unpacked(self, member: zipfile.ZipInfo, budget: "_Budget") -> IO[bytes]:
        """Return the bytes of a member as a temporary file without a name."""
        if member.flag_bits & _ENCRYPTED:
            raise Unreadable(_LOCKED)
        file = tempfile.SpooledTemporaryFile(_SPOOL)  # noqa: SIM115  closed by whoever reads it
        with self.opened() as archive, archive.open(member) as packed:
            while part := packed.read(2**20):
                budget.take(0, len(part))
                file.write(part)
        file.seek(0)
        return file  # type: ignore[return-value]  # in typeshed it is no IO


class _Budget:
    """What may still be unpacked of the zips within one zip, so that a bomb costs itself alone."""

    def __init__(self) -> None:
        self._members, self._bytes = MAX_MEMBERS, _MAX_UNPACKED

    def take(self, members: int, size: int) -> None:
        self._members -= members
        self._bytes -= size
        if self._members < 0 or self._bytes < 0:
            raise Unreadable(_ZIPS)


def _in_zip(
    archive: _Zip, prefix: Parts, zips: tuple[tuple[int, When], ...], budgets: tuple[_Budget, ...]
) -> Iterator[Found]:
    """Yield the files of a zip; `budgets` has one entry for each zip that it lies in."""
    members = archive.members()
    # No deeper than is entered: a path of a zip may have 32,767 folders in each other.
    places = [(_parts(m)[: MAX_DEPTH + 1], m.is_dir()) for m in members]
    folders = {place for place, is_dir in places if is_dir}
    filled = {place[:n] for place, is_dir in places for n in range(1, len(place) + (not is_dir))}
    for parts in sorted(folders - filled):
        if parts and wanted(parts):
            yield Found((*prefix, *parts, ""), FileKind.FOLDER, bytes)
    for member in members:
        name, parts = _member_name(member), _parts(member)
        if not parts or member.is_dir() or not wanted(parts):
            continue
        whole = (*prefix, *parts[:MAX_DEPTH], *parts[MAX_DEPTH:][-1:])
        time = partial(_member_time, member)
        head = partial(archive.read, member, HEAD)
        if name.startswith("/") or "\\" in name or ":" in parts[0] or {".", ".."} & set(parts):
            # In a zip within another it stays that student's who handed the zip in.
            yield broken((*prefix, name) if prefix else ("", name), _BAD_PATH)
        elif stat.S_ISLNK(member.external_attr >> 16):
            yield broken(whole, LINK)
        elif member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            yield broken(whole, _COMPRESSION)  # LZMA allocates as much memory as the member asks for
        elif len(parts) > MAX_DEPTH:
            yield broken(whole, _TOO_DEEP)
        elif is_zip(parts[-1], head):
            # All zips within one zip share its budget.
            budget = budgets[0] if budgets else _Budget()
            inner = _Zip(partial(archive.unpacked, member, budget))
            around = (*zips, (len(whole), time))
            if len(budgets) < _MAX_ZIPS:
                yield from _within(inner, whole, around, (budget, *budgets))
            else:
                yield broken(whole, _ZIPS)
        else:
            yield identified(whole, head, partial(archive.read, member), time, zips)


def _within(
    inner: _Zip, parts: Parts, zips: tuple[tuple[int, When], ...], budgets: tuple[_Budget, ...]
) -> Iterator[Found]:
    """Yield the files of a zip that lies in what was given, or the reason why it cannot be opened."""
    try:
        members = len(inner.members())
        budgets[0].take(members, 0)
        if members > _KEPT_OPEN:
            inner.keep()
        found = list(_in_zip(inner, parts, zips, budgets))
    except _DAMAGED as error:
        yield broken(parts, _BAD_ZIP.format(error=clean(str(error))[:200]))
    except Unreadable as reason:
        yield broken(parts, reason.says)
    else:
        yield from found or [Found((*parts, ""), FileKind.FOLDER, bytes)]


def _parts(member: zipfile.ZipInfo) -> Parts:
    return tuple(part for part in _member_name(member).split("/") if part)


def _member_name(member: zipfile.ZipInfo) -> str:
    """Decode a member's name: without the UTF-8 flag zipfile assumes cp437, but Chinese Windows writes GBK.

    Some programs on Windows write backslashes between folders.
    """
    name = member.filename
    if not member.flag_bits & 0x800:
        for encoding in ("utf-8", "gb18030"):
            with contextlib.suppress(UnicodeError):
                name = name.encode("cp437").decode(encoding)
                break
    return name if "/" in name else name.replace("\\", "/")


def _member_time(member: zipfile.ZipInfo) -> datetime | None:
    try:
        return datetime(*member.date_time).astimezone(UTC)  # naive, so taken as local time
    except (ValueError, OverflowError, OSError):
        return None
