"""Observe what a submission may want to change outside besides files and processes: the machine and its network."""

import contextlib
import os
import resource
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

_SETTINGS = (
    "kernel/pid_max",
    "kernel/hostname",
    "kernel/core_pattern",
    "user/max_user_namespaces",
    "vm/overcommit_memory",
)
_LIMITS = ("CPU", "DATA", "AS", "NOFILE", "FSIZE", "NPROC", "STACK", "CORE")


def machine() -> dict[str, object]:
    """Return modes and owners of devices, settings of the kernel, mounts, and the limits of this process."""
    found: dict[str, object] = {}
    for device in Path("/dev").iterdir():
        facts = device.lstat()
        if stat.S_ISCHR(facts.st_mode) or stat.S_ISBLK(facts.st_mode):
            found[str(device)] = (facts.st_mode, facts.st_uid, facts.st_gid, facts.st_rdev)
    for path in (*(f"/proc/sys/{name}" for name in _SETTINGS), "/proc/mounts", "/proc/sysvipc/msg"):
        found[path] = Path(path).read_text()
    found |= {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}")) for name in _LIMITS}
    return found | {"nice": os.getpriority(os.PRIO_PROCESS, 0), "folder": os.getcwd()}


class Network:
    """Servers that nobody should call, and a port that nobody should open.

    Attributes
    ----------
    places : dict of str to str
        Where they are, by the words by which submissions name them.
    calls : int
        Connections and messages, out of a submission or into one; complete once `watched` has ended.
    """

    def __init__(self) -> None:
        self.places: dict[str, str] = {}
        self.calls = 0

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Serve, and try to call in, as long as the block runs."""
        over, name = threading.Event(), f"hookedu-{os.getpid()}"
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.socket(type=socket.SOCK_DGRAM) as mailbox,
            socket.socket(socket.AF_UNIX) as local,
            socket.create_server(("127.0.0.1", 0)) as unused,
        ):
            port_out, port_in = server.getsockname()[1], unused.getsockname()[1]
            unused.close()
            mailbox.bind(("127.0.0.1", port_out))
            local.bind(f"\0{name}")
            local.listen()
            self.places = {"PORT_IN": str(port_in), "PORT_OUT": str(port_out), "SOCKET": name}
            caller = threading.Thread(target=self._call_in, args=(port_in, over))
            caller.start()
            try:
                yield
            finally:
                over.set()
                caller.join()
            for end, receive in (
                (server, server.accept),
                (local, local.accept),
                (mailbox, lambda: mailbox.recv(9)),
            ):
                end.settimeout(0)
                with contextlib.suppress(BlockingIOError):
                    receive()
                    self.calls += 1

    def _call_in(self, port: int, over: threading.Event) -> None:
        while not over.wait(0.05):
            with socket.socket() as call:
                call.settimeout(0.05)
                self.calls += call.connect_ex(("127.0.0.1", port)) == 0
