"""The grader's end of the warm process: start it, inside bubblewrap unless told otherwise, and ask it for forks.

What the submissions see of the file system is named here, read-only: Python, its packages, the system's
libraries and hookedu itself. Not there: the course with its solutions, other submissions, the gradebook, any
home, the network, the instructor's environment.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hookedu import catalog
from hookedu.catalog import CourseError
from hookedu.grading.run import bubblewrap, seccomp, warm
from hookedu.grading.run.bubblewrap import Program
from hookedu.language import Text

_PACKAGE = Path(catalog.__file__).resolve().parent
_ROOT = "/hookedu"  # where the package lies inside
_NO_SANDBOX = Text(
    zh="这台机器上无法隔离提交的代码：{why}。在 Linux 上请允许用户命名空间，或安装系统的 `bubblewrap`；"
    "如果你信任这些提交，也可以加上 `--no-isolation`。",
    en="Submissions cannot be isolated on this machine: {why}. On Linux allow user namespaces, or install the "
    "system's `bubblewrap`; or, if you trust these submissions, add `--no-isolation`.",
)
_NO_START = Text(
    zh="评分进程没能启动：{why}。先运行 `hookedu doctor`。",
    en="The grading process did not start: {why}. Run `hookedu doctor` first.",
)


@dataclass
class Launched:
    """One submission that runs: its results come out of `channel`, its end over `line`; closing that ends it."""

    channel: int
    line: socket.socket

    def close(self) -> None:
        """End the submission, if it has not ended, and wait until nothing of it is left."""
        with contextlib.suppress(OSError):
            self.line.shutdown(socket.SHUT_WR)
            while self.line.recv(4096):
                pass
        self.line.close()
        os.close(self.channel)


class Sandbox:
    """The warm process, started when the first job comes. Any number of threads may ask it for forks."""

    def __init__(self, isolated: bool, startup: float):
        """startup: seconds that the warm process may take to start."""
        self.isolated, self._startup = isolated, startup
        self._lock = threading.Lock()
        self._program: Program | None = None  # the one that works here, once that is known
        self._process: subprocess.Popen | None = None
        self._socket: socket.socket | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="hookedu-warm-")

    def launch(self, job: dict[str, Any]) -> Launched:
        """Run a job in a fork. CourseError says what the machine lacks; OSError where even a new warm process
        cannot take the job."""
        with self._lock:
            if self._process is None:
                self._start()
            try:
                return self._launch(job)
            except OSError:  # the warm process is gone: the machine ran out of memory, say
                self._stop()
                self._start()
                return self._launch(job)

    def rehearse(self) -> Program:
        """Try isolation once without loading anything, and return the program that made it.

        Raises
        ------
        CourseError
            Says what to do where submissions cannot be isolated here.
        """
        self._start("rehearsal")
        self._stop()
        assert self._program
        return self._program

    def close(self) -> None:
        """End the warm process and, with isolation, everything that ever came from it."""
        self._stop()
        self._folder.cleanup()

    def _launch(self, job: dict[str, Any]) -> Launched:
        ours, theirs = socket.socketpair()
        channel, results = os.pipe()
        try:
            with tempfile.TemporaryFile() as file:
                file.write(json.dumps(job).encode())
                file.seek(0)
                socket.send_fds(self._socket, [b"run"], [file.fileno(), results, theirs.fileno()])
        except BaseException:
            ours.close()
            os.close(channel)
            raise
        finally:
            theirs.close()
            os.close(results)
        return Launched(channel, ours)

    def _start(self, mode: str = "") -> None:
        """Start the warm process with the first bubblewrap that works; torch is loaded after isolation was tried."""
        if not self.isolated:
            self._start_with(None, "open")
            return
        candidates = iter([self._program]) if self._program else bubblewrap.programs()
        refused: CourseError | None = None
        for program in candidates:
            try:
                self._start_with(program, mode or "isolated")
            except CourseError as error:
                refused = refused or error  # the system's own word comes first
                continue
            self._program = program
            return
        raise refused or CourseError(_NO_SANDBOX.format(why="bwrap: not found"))

    def _start_with(self, program: Program | None, mode: str) -> None:
        ours, theirs = socket.socketpair()
        root = _ROOT if program else str(_PACKAGE.parent)
        code = f"import sys; sys.path.insert(0, {root!r}); from hookedu.grading.run.warm import main; main()"
        python = [sys.executable, "-I", "-B", "-X", "utf8", "-c", code, str(theirs.fileno()), mode]
        home = warm.HOME if program else self._folder.name
        log = open(os.path.join(self._folder.name, "log"), "w+b")  # noqa: SIM115 - closed below, after it was read
        refused = _pipe_with(seccomp.program())
        try:
            self._process = subprocess.Popen(
                [*(_bubblewrapped(program, home, refused) if program else ()), *python],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env=_environment(home),
                pass_fds=[theirs.fileno(), refused],
                start_new_session=True,
            )
            self._socket = ours
            theirs.close()
            ours.settimeout(self._startup)
            if ours.recv(16) != warm.READY:
                raise TimeoutError
            ours.settimeout(None)
        except (OSError, TimeoutError) as error:
            log.seek(0)
            why = log.read().decode("utf-8", "replace").strip().rsplit("\n", 1)[-1] or str(error)
            self._stop()
            raise CourseError((_NO_SANDBOX if program else _NO_START).format(why=why[:300])) from None
        finally:
            os.close(refused)
            log.close()

    def _stop(self) -> None:
        if self._process:
            if self._socket:
                self._socket.close()  # it hangs up: the warm process leaves, and all that came from it with it
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None


def _bubblewrapped(program: Program, home: str, refused: int) -> list[str]:
    # No --die-with-parent: it would end with the thread that started it. It ends when the grader hangs up, and as
    # process 1 of its namespace it takes all that came from it along; bubblewrap's own would wait for them.
    # As root of its own: for anybody else bubblewrap makes a second user namespace within the first, which has no
    # say over the process namespace.
    arguments = [program.path, "--unshare-all", "--uid", "0", "--gid", "0", "--new-session"]
    arguments += ["--as-pid-1", "--hostname", "grader", "--seccomp", str(refused)]
    # Within: the warm process makes namespaces (SYS_ADMIN), maps root to nobody (SETFCAP) and reads how much
    # memory a submission takes that would rather not be looked at (SYS_PTRACE). Its forks drop all of it.
    for capability in ("CAP_SYS_ADMIN", "CAP_SETFCAP", "CAP_SYS_PTRACE"):
        arguments += ["--cap-add", capability]
    arguments += ["--proc", "/proc", "--dev", "/dev", "--dir", "/tmp", "--tmpfs", home]
    for path in _visible():
        arguments += ["--ro-bind", path, path]
    for path in ("/bin", "/lib", "/lib32", "/lib64", "/sbin"):
        if os.path.islink(path):
            arguments += ["--symlink", os.readlink(path), path]
    for path in _hidden():
        arguments += ["--tmpfs", path, "--remount-ro", path]
    parts = [p.name for p in _PACKAGE.iterdir() if p.name != "__init__.py" and p != catalog.ROOT]
    for path in ("__init__.py", *parts):
        arguments += ["--ro-bind", str(_PACKAGE / path), f"{_ROOT}/hookedu/{path}"]
    return [*arguments, "--remount-ro", "/", "--remount-ro", "/dev", "--chdir", home, "--"]


def _pipe_with(data: bytes) -> int:
    """A pipe to read these few bytes from, and then its end."""
    reading, writing = os.pipe()
    with open(writing, "wb") as file:
        file.write(data)
    return reading


def _visible() -> list[str]:
    """The folders that Python needs: its own, its packages, the system's libraries and fonts."""
    wanted = [sys.prefix, sys.base_prefix, os.path.dirname(os.path.realpath(sys.executable))]
    wanted += [path for path in sys.path if path and os.path.isdir(path) and path.endswith("-packages")]
    wanted += ["/usr", "/bin", "/lib", "/lib32", "/lib64", "/sbin", "/etc/ld.so.cache", "/etc/fonts"]
    found: list[str] = []
    for path in map(os.path.abspath, wanted):
        inside = any(path == f or path.startswith(f.rstrip("/") + "/") for f in found)
        if os.path.exists(path) and not os.path.islink(path) and not inside:
            found.append(path)
    return found


def _hidden() -> list[str]:
    """The folders of the course that _visible() would show: a wheel carries them, with every answer, among the packages.

    Named as they are seen inside: a path to the packages may lead through a link.
    """
    folders = [catalog.ROOT / name for name in ("course", "lessons", "solutions")]
    return [
        os.path.join(path, folder.relative_to(real))
        for path in _visible()
        for folder in folders
        if folder.is_dir() and folder.is_relative_to(real := Path(path).resolve())
    ]


def _environment(home: str) -> dict[str, str]:
    """Nothing of the instructor's but where programs and libraries are."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL")}
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return (
        kept
        | dict.fromkeys(threads, "1")
        | {
            "HOME": home,
            "TMPDIR": home,
            "IPYTHONDIR": os.path.join(home, "ipython"),
            "MPLBACKEND": "Agg",
            "MPLCONFIGDIR": os.path.join(home, "matplotlib"),
            "CUDA_VISIBLE_DEVICES": "",  # no exercise needs a GPU, and many forks at once would fill it
        }
    )
