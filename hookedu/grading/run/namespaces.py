"""Linux namespaces for one submission, created inside bubblewrap with system calls that the standard library lacks.

Python 3.12 has os.unshare but can neither mount nor drop capabilities, so libc is called through ctypes. Every function
raises OSError if the kernel refuses a call; no code of a learner has run by then.
"""

import contextlib
import ctypes
import functools
import os
import re
import struct
from collections.abc import Iterator

_PIDS = 400  # processes and threads of one submission; the kernel accepts no number below 301
UID = 1000  # user and group id that a submission sees as its own

_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = (
    0x20000,
    0x4000000,
    0x8000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
_NOSUID, _NODEV, _NOEXEC, _RDONLY, _REC, _PRIVATE = 2, 4, 8, 1, 0x4000, 0x40000
_REMOUNT, _BIND, _RELATIME = 0x20, 0x1000, 0x200000
_SAME = 0x40F  # flags that statvfs and mount write alike: read-only, nosuid, nodev, noexec, noatime
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_CAPBSET_DROP, _SET_CHILD_SUBREAPER, _SET_NO_NEW_PRIVS = 24, 36, 38
_COLLAPSE, _HUGE = 25, 2**21
_SIZES = (*(2**n for n in range(16, 11, -1)), *range(2048 - 16, 16, -16))  # of gaps, in bytes
_NUMBER = re.compile(r"\d+")  # here, because every submission would compile it again
_CAPABILITY_VERSION_3 = 0x20080522


class _Mallinfo(ctypes.Structure):
    """What `mallinfo2` of the C library returns: among others the bytes that are free, and of these those at the end."""

    _names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in _names.split()]


@functools.cache
def _libc() -> ctypes.CDLL:
    """Return the C library, loaded on first use: Windows imports this module too but has no such library."""
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc(), name)(*arguments):
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


@contextlib.contextmanager
def new_process_namespace() -> Iterator[None]:
    """Start the processes forked in this context in a new process namespace, the first of them as its process 1.

    Needs CAP_SYS_ADMIN. The new namespace belongs to the grader's user namespace, not to the submission's, so nothing
    inside it may change it.
    """
    home = os.open("/proc/self/ns/pid", os.O_RDONLY)
    try:
        _call("unshare", _NEWPID)
        try:
            yield
        finally:
            _call("setns", home, _NEWPID)
    finally:
        os.close(home)


def limit_processes() -> None:
    """Limit the number of processes in a new process namespace; call it there before `enter`.

    Takes effect from Linux 6.14 on, where each process namespace has its own pid_max; before, there is one for the
    whole machine, which must not be touched. RLIMIT_NPROC alone does not suffice, because it does not apply to root.
    """
    if _kernel() < (6, 14):
        return
    with contextlib.suppress(OSError), open("/proc/sys/kernel/pid_max", "w") as file:
        file.write(str(_PIDS))


def _kernel() -> tuple[int, ...]:
    """Return the kernel's version: (6, 14)."""
    return tuple(map(int, _NUMBER.findall(os.uname().release)[:2]))


def enter() -> None:
    """Enter new user, mount, network, IPC and host-name namespaces."""
    uid, gid = os.getuid(), os.getgid()
    _call("unshare", _NEWUSER | _NEWNS | _NEWNET | _NEWIPC | _NEWUTS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{UID} {uid} 1"), ("gid_map", f"{UID} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def furnish(folders: list[str], mib: int) -> None:
    """Restrict the new namespaces to what a submission may use.

    Afterwards each of `folders` is an empty, writable tmpfs, limited in size and in its number of files. The nodes of
    devices cannot be changed, /proc and the terminals are covered, no further namespace and nothing else that is limited
    per user (inotify instances) can be created, and no privilege is left. Other submissions can neither be seen in /proc
    nor be reached by a signal.

    Parameters
    ----------
    folders : list of str
        Existing folders to mount over.
    mib : int
        Size of each folder in MiB.
    """
    _call("mount", b"none", b"/", None, _REC | _PRIVATE, None)
    for limited in ("max_user_namespaces", "max_inotify_instances"):
        with open(f"/proc/sys/user/{limited}", "w") as file:
            file.write("0")
    for folder in folders:
        size = f"size={mib}m,nr_inodes=8192,mode=0700".encode()
        _call("mount", b"tmpfs", os.fsencode(folder), b"tmpfs", _NOSUID | _NODEV, size)
    for device in _DEVICES:
        _protect(f"/dev/{device}")
    for folder in (b"/proc", b"/dev/pts"):
        _call(
            "mount", b"tmpfs", folder, b"tmpfs", _NOSUID | _NODEV | _NOEXEC | _RDONLY, b"size=0,nr_inodes=1"
        )
    drop_privileges()


def _protect(device: str) -> None:
    """Mount a device over itself, read-only: what is written to it still arrives, but it is the host's own node.

    For the grader's root its mode and owner could otherwise be changed from inside.
    """
    if not os.path.exists(device):
        return
    path, flags = os.fsencode(device), os.statvfs(device).f_flag
    kept = flags & _SAME | (_RELATIME if flags & getattr(os, "ST_RELATIME", 0x1000) else 0)
    _call("mount", path, path, None, _BIND, None)
    _call("mount", None, path, None, _REMOUNT | _BIND | _RDONLY | kept, None)


def drop_privileges() -> None:
    """Drop all capabilities, for this process and for every program that it starts."""
    _prctl(_SET_NO_NEW_PRIVS, 1)
    for capability in range(64):
        try:
            _prctl(_CAPBSET_DROP, capability)
        except OSError:
            break  # beyond the last capability of this kernel
    header = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITY_VERSION_3, 0))
    _call("capset", header, ctypes.create_string_buffer(struct.pack("6I", *[0] * 6)))


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that none can escape."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def settle() -> None:
    """Arrange this process's memory for many forks: as few pages as possible are mapped in each, and copied by each."""
    _fill_gaps()
    _use_huge_pages()


def _fill_gaps() -> None:
    """Take all memory that the C library holds free between what is in use (glibc 2.33).

    A fork that allocates there copies a page for every few of these gaps: a third of all pages that it copies. The 6 MiB
    are in memory anyway.
    """
    libc = _libc()
    with contextlib.suppress(AttributeError):  # an older glibc, or another library
        libc.mallinfo2.restype, libc.malloc.restype, libc.sbrk.restype = _Mallinfo, *[ctypes.c_void_p] * 2
        found = libc.mallinfo2()
        end, most = libc.sbrk(None) - found.keepcost, 2 * found.fordblks
        for size in _SIZES:
            # Beyond the end there are no gaps. Another library's memory may lie anywhere: then `most` ends it.
            while most > 0 and (libc.malloc(ctypes.c_size_t(size)) or end) < end:
                most -= size


def _use_huge_pages() -> None:
    """Move this process's private memory into huge pages where the kernel can (Linux 6.1).

    A fork copies one page table entry per page. For the 85,000 small pages that torch takes, that is most of the time
    of a fork.
    """
    with contextlib.suppress(OSError), open("/proc/self/maps") as maps:
        for area in maps.read().splitlines():
            place, mode, *_, name = (area + " -").split(maxsplit=5)
            begin, end = (int(address, 16) for address in place.split("-"))
            if "w" in mode and "/" not in name:
                for address in range(-(-begin // _HUGE) * _HUGE, end - _HUGE + 1, _HUGE):
                    _libc().madvise(ctypes.c_void_p(address), ctypes.c_size_t(_HUGE), _COLLAPSE)


def _prctl(option: int, value: int) -> None:
    _call("prctl", option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
