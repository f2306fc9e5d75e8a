"""The seccomp program that refuses system calls to submissions, in the form that bubblewrap takes.

Two kinds of calls are refused: those that allocate memory belonging to no process, where no limit would apply to it (or
one that is shared with everything else of the instructor's), and those that no lesson needs and that reach deep into the
kernel. Sockets can be made of a few families only: the network namespace is empty, but some families (AF_VSOCK, which
reaches the host of a virtual machine) are not bound to a namespace. Everything else that a submission must not do is
prevented by namespaces and by missing privileges. The program is classic BPF, see seccomp(2) and linux/filter.h. It is
assembled here because a library would need libseccomp on the machine.
"""

import errno
import platform
import struct

_REFUSED = {  # name -> its number on x86_64 and on aarch64
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "vmsplice": (316, 75),  # pins memory in pipes
    "io_uring_setup": (425, 425),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    # What is watched is limited per user of the machine, and one descriptor can be watched under many numbers. Python
    # finds out that it has no epoll, and polls. aarch64 has the second call only.
    "epoll_create": (213, 20),
    "epoll_create1": (291, 20),
    "syslog": (103, 116),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
}
_SOCKET = (41, 198)
_FCNTL = (72, 25)
# Locks on ranges of a file are memory without any limit. F_SETLK, F_SETLKW, F_OFD_SETLK and F_OFD_SETLKW; a file has at
# most one of `flock`, which stays.
_LOCKS = (6, 7, 37, 38)
_FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK
_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # AUDIT_ARCH_* of linux/audit.h
_X32 = 0x40000000  # on x86_64: from this number on the same calls again, with 32-bit pointers (the x32 ABI)
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # load a word of seccomp_data; jumps; verdict
_NUMBER, _MACHINE = 0, 4  # offsets in seccomp_data
_FIRST, _SECOND = 16, 24  # of the low half of a call's arguments
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.ENOSYS


def refused() -> dict[str, int]:
    """Return the refused calls with their numbers on this machine; empty if the numbers are not known."""
    machine = platform.machine()
    if machine not in _MACHINES:
        return {}
    return {name: numbers[list(_MACHINES).index(machine)] for name, numbers in _REFUSED.items()}


def program() -> bytes:
    """Return the program for this machine.

    Code for another architecture (32 bits on a 64-bit kernel) cannot make any system call. Where the numbers are not
    known, the program allows every call.
    """
    numbers = refused()
    if not numbers:
        return struct.pack("HBBI", _RETURN, 0, 0, _ALLOW)
    place = list(_MACHINES).index(platform.machine())
    tests = [(_AT_LEAST, _X32), *((_EQUAL, number) for number in numbers.values())]
    # What follows the tests: if the call is fcntl(), its command; if it is socket(), its family; "refuse" and "allow".
    # Jumps are relative; those to the last two steps are written from the end.
    locks, families = len(_LOCKS), len(_FAMILIES)
    rest = [
        (_EQUAL, 0, locks + 2, _FCNTL[place]),
        (_LOAD, 0, 0, _SECOND),
        *((_EQUAL, locks - i + families + 2, 0, command) for i, command in enumerate(_LOCKS)),
        (_EQUAL, families + 3, families + 3, 0),
        (_EQUAL, 0, families + 2, _SOCKET[place]),
        (_LOAD, 0, 0, _FIRST),
        *((_EQUAL, families - i, 0, family) for i, family in enumerate(_FAMILIES)),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    steps = [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 1, 0, _MACHINES[platform.machine()]),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, _NUMBER),
        # A match jumps over the remaining tests to the "refuse" before the last step.
        *((test, len(tests) - i - 1 + len(rest) - 2, 0, value) for i, (test, value) in enumerate(tests)),
        *rest,
    ]
    return b"".join(struct.pack("HBBI", *step) for step in steps)
