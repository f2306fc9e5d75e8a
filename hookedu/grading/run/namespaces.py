"""Linux namespaces for one submission, from inside bubblewrap: what the standard library has no call for.

Python 3.12 has os.unshare; mounting and dropping capabilities it has not, so libc is called by its name.
Every function raises OSError where the kernel refuses, and nothing of a learner's has run by then.
"""

import contextlib
import ctypes
import functools
import os
import struct
from collections.abc import Iterator

_PIDS = 400  # processes and threads of one submission; the kernel takes no smaller number than 301
UID = 1000  # what a submission sees itself as

_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = (
    0x20000,
    0x4000000,
    0x8000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
_NOSUID, _NODEV, _NOEXEC, _RDONLY, _REC, _PRIVATE = 2, 4, 8, 1, 0x4000, 0x40000
_CAPBSET_DROP, _SET_CHILD_SUBREAPER, _SET_NO_NEW_PRIVS = 24, 36, 38
_COLLAPSE, _HUGE = 25, 2**21
_CAPABILITY_VERSION_3 = 0x20080522


@functools.cache
def _libc() -> ctypes.CDLL:
    """The C library; at the first call, for Windows has none of this name and imports this module all the same."""
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc(), name)(*arguments):
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


@contextlib.contextmanager
def new_process_namespace() -> Iterator[None]:
    """Inside, what is started is started in a new process namespace, the first as its process 1.

    Needs CAP_SYS_ADMIN. The new namespace is the grader's, not the submission's: nothing in there may touch it.
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
    """Before `enter`, in a new process namespace: few processes in it (Linux 6.14, where each has its own number;
    RLIMIT_NPROC does not hold for root)."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/pid_max", "w") as file:
        file.write(str(_PIDS))


def enter() -> None:
    """Leave for new user, mount, network, IPC and host-name namespaces."""
    uid, gid = os.getuid(), os.getgid()
    _call("unshare", _NEWUSER | _NEWNS | _NEWNET | _NEWIPC | _NEWUTS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{UID} {uid} 1"), ("gid_map", f"{UID} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def furnish(folders: list[str], mib: int) -> None:
    """Inside the new namespaces: empty, small folders of memory to write into, no /proc, no terminals, no privileges,
    no more namespaces, nothing of what a user may have only so many of. Neighbours are neither seen in /proc nor
    reached by a signal."""
    _call("mount", b"none", b"/", None, _REC | _PRIVATE, None)
    for limited in ("max_user_namespaces", "max_inotify_instances"):
        with open(f"/proc/sys/user/{limited}", "w") as file:
            file.write("0")
    for folder in folders:
        size = f"size={mib}m,nr_inodes=8192,mode=0700".encode()
        _call("mount", b"tmpfs", os.fsencode(folder), b"tmpfs", _NOSUID | _NODEV, size)
    for folder in (b"/proc", b"/dev/pts"):
        _call(
            "mount", b"tmpfs", folder, b"tmpfs", _NOSUID | _NODEV | _NOEXEC | _RDONLY, b"size=0,nr_inodes=1"
        )
    drop_privileges()


def drop_privileges() -> None:
    """No capability, now or through any program that is started."""
    _prctl(_SET_NO_NEW_PRIVS, 1)
    for capability in range(64):
        try:
            _prctl(_CAPBSET_DROP, capability)
        except OSError:
            break  # beyond the last one that this kernel knows
    header = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITY_VERSION_3, 0))
    _call("capset", header, ctypes.create_string_buffer(struct.pack("6I", *[0] * 6)))


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that none can leave."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def use_huge_pages() -> None:
    """Put this process's own memory into huge pages where the kernel (Linux 6.1) can: a fork copies one entry for
    each page, and of the 85,000 small ones that torch takes that is most of the time of a fork."""
    with contextlib.suppress(OSError), open("/proc/self/maps") as maps:
        for area in maps.read().splitlines():
            place, mode, *_, name = (area + " -").split(maxsplit=5)
            begin, end = (int(address, 16) for address in place.split("-"))
            if "w" in mode and "/" not in name:
                for address in range(-(-begin // _HUGE) * _HUGE, end - _HUGE + 1, _HUGE):
                    _libc().madvise(ctypes.c_void_p(address), ctypes.c_size_t(_HUGE), _COLLAPSE)


def _prctl(option: int, value: int) -> None:
    _call("prctl", option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
