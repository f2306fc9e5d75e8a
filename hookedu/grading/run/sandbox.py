"""The grader's side of the warm process: start it, in bubblewrap unless isolation is off, and request forks from it.

What submissions see of the file system is listed here, all of it read-only: Python, its packages, the system's
libraries and hookedu itself. They do not see the course with its solutions, other submissions, the gradebook, any home,
the network or the instructor's environment.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from hookedu import catalog
from hookedu.catalog import CourseError
from hookedu.grading.run import bubblewrap, cgroups, seccomp, warm
from hookedu.grading.run.bubblewrap import Program
from hookedu.language import Text

_PACKAGE = Path(catalog.__file__).resolve().parent
_ROOT = "/hookedu"  # parent folder of the package inside the sandbox
# What distinguishes a right answer from a wrong one; empty inside the sandbox.
_CHECKS = _PACKAGE / "exercises" / "checks"
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


class _NotIsolated(CourseError):
    """A bubblewrap program could not isolate the warm process."""


@dataclass
class Launched:
    """One running submission.

    Attributes
    ----------
    channel : int
        File descriptor of the pipe from which its results are read.
    line : socket.socket
        Control socket: how the submission ended is reported there, and closing it ends the submission.
    group : cgroups.Group or None
        Its control group, where the machine allows one.
    """

    channel: int
    line: socket.socket
    group: cgroups.Group | None = None

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel has ended it because its group needed more memory than it may take."""
        return self.group is not None and self.group.out_of_memory

    def close(self) -> None:
        """End the submission if it still runs, and wait until no process of it is left."""
        with contextlib.suppress(OSError):
            self.line.shutdown(socket.SHUT_WR)
            while self.line.recv(4096):
                pass
        self.line.close()
        os.close(self.channel)
        if self.group:
            self.group.remove()


class Sandbox:
    """The warm process, started with the first job; any number of threads may request forks from it.

    Parameters
    ----------
    isolated : bool
        Start it in bubblewrap.
    startup : float
        Seconds that the warm process may take to start.
    """

    def __init__(self, isolated: bool, startup: float):
        self.isolated, self._startup = isolated, startup
        self._lock = threading.Lock()
        self._program: Program | None = None  # the one that works on this machine, once known
        self._process: subprocess.Popen | None = None
        self._socket: socket.socket | None = None
        self._scope: list[str] | None = None  # what starts it in a scope of systemd, once known
        self._groups: cgroups.Groups | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="hookedu-warm-")

    def launch(self, job: dict[str, Any], cells: list[str]) -> Launched:
        """Run a job (see `runner.run`) and the sources of its cells in a fork. Only the fork reads the sources.

        Raises
        ------
        CourseError
            If the warm process cannot be started; the text says what the machine lacks.
        OSError
            If even a newly started warm process cannot take the job.
        """
        with self._lock:
            if self._process is None:
                self._start()
            try:
                return self._launch(job, cells)
            except OSError:  # the warm process is gone, for example because the machine ran out of memory
                self._stop()
                self._start()
                return self._launch(job, cells)

    def rehearse(self) -> tuple[Program, bool]:
        """Try the isolation once without loading torch.

        Returns
        -------
        Program
            The program that provides it.
        bool
            Whether each submission gets a control group of its own.

        Raises
        ------
        CourseError
            If submissions cannot be isolated on this machine; the text says what to do.
        """
        self._start("rehearsal")
        grouped = self._groups is not None
        self._stop()
        assert self._program
        return self._program, grouped

    def close(self) -> None:
        """End the warm process and, with isolation, every process that it or a submission has started."""
        self._stop()
        self._folder.cleanup()

    def _launch(self, job: dict[str, Any], cells: list[str]) -> Launched:
        assert self._socket  # set by _start()
        ours, theirs = socket.socketpair()
        channel, results = os.pipe()
        launched = Launched(channel, ours, self._group(job["limits"]))
        try:
            with _file_with(job) as todo, _file_with(cells) as sources, contextlib.ExitStack() as stack:
                descriptors = [todo.fileno(), sources.fileno(), results, theirs.fileno()]
                if launched.group:
                    entrance = launched.group.entrance()
                    stack.callback(os.close, entrance)
                    descriptors.append(entrance)
                socket.send_fds(self._socket, [b"run"], descriptors)
        except BaseException:
            ours.close()
            os.close(channel)
            if launched.group:
                launched.group.remove()
            raise
        finally:
            theirs.close()
            os.close(results)
        return launched

    def _group(self, limits: dict[str, int]) -> cgroups.Group | None:
        with contextlib.suppress(OSError):  # not allowed any more; the watcher in warm.py has to suffice
            if self._groups:
                return self._groups.new(limits["memory"] + warm.SLACK, limits["processes"])
        return None

    def _start(self, mode: str = "") -> None:
        """Start the warm process with the first bubblewrap program that works; torch is loaded after that is known."""
        if not self.isolated:
            self._start_with(None, "open")
            return
        says: tuple[Text, ...] = ()
        try:
            for program in [self._program] if self._program else bubblewrap.programs():
                try:
                    self._start_with(program, mode or "isolated")
                except _NotIsolated as error:
                    says += error.says
                    continue
                self._program = program
                return
        except CourseError as error:  # the bundled program was refused, or torch does not load
            raise CourseError(*says, *error.says) from None
        raise CourseError(*says or (_NO_SANDBOX.format(why="bwrap: not found"),))

    def _start_with(self, program: Program | None, mode: str) -> None:
        """Start the warm process. Raises _NotIsolated if this program cannot isolate it, else CourseError."""
        ours, theirs = socket.socketpair()
        root = _ROOT if program else str(_PACKAGE.parent)
        code = f"import sys; sys.path.insert(0, {root!r}); from hookedu.grading.run.warm import main; main()"
        python = [sys.executable, "-I", "-B", "-X", "utf8", "-c", code, str(theirs.fileno()), mode]
        home = warm.HOME if program else self._folder.name
        log = open(os.path.join(self._folder.name, "log"), "w+b")  # noqa: SIM115 - closed below, after it has been read
        refused = _pipe_with(seccomp.program())
        isolated = not program
        if program and self._scope is None:
            self._scope = cgroups.scope()
        start = [*(self._scope or ()), *_bubblewrapped(program, home, refused)] if program else []
        environment = _environment(home)
        if program and self._scope:
            environment |= {k: v for k, v in os.environ.items() if k in cgroups.ENVIRONMENT}
        try:
            self._process = subprocess.Popen(
                [*start, *python],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd="/" if program else None,  # nothing is ever loaded from the current folder
                env=environment,
                pass_fds=[theirs.fileno(), refused],
                start_new_session=True,
            )
            self._socket = ours
            theirs.close()
            ours.settimeout(self._startup)
            if program:
                isolated = _expect(ours, warm.ISOLATED)
                self._groups = cgroups.below(self._process.pid, bool(self._scope))
            if mode != "rehearsal":
                _expect(ours, warm.READY)
            ours.settimeout(None)
        except OSError as error:
            log.seek(0)
            why = log.read().decode("utf-8", "replace").strip().rsplit("\n", 1)[-1] or str(error)
            self._stop()
            if program and not isolated:
                raise _NotIsolated(_NO_SANDBOX.format(why=f"{program.path}: {why[:300]}")) from None
            raise CourseError(_NO_START.format(why=why[:300])) from None
        finally:
            os.close(refused)
            log.close()
            theirs.close()
            if self._process is None:
                ours.close()

    def _stop(self) -> None:
        if self._process:
            if self._socket:
                self._socket.close()  # hang up: the warm process exits, and all that came from it ends with it
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._groups:
            self._groups.close()
            self._groups = None


def _expect(line: socket.socket, message: bytes) -> bool:
    """Wait for one byte from the warm process; TimeoutError, which is an OSError, if it does not come or is another."""
    if line.recv(1) != message:
        raise TimeoutError
    return True


def _bubblewrapped(program: Program, home: str, refused: int) -> list[str]:
    # No --die-with-parent: the warm process would end together with the thread that started it. Instead it exits when
    # the grader hangs up. --as-pid-1 makes it process 1 of its namespace, so that all processes that came from it end
    # with it; bubblewrap's own process 1 would wait for them.
    # --uid 0: for any other user bubblewrap creates a second user namespace within the first, and that one has no
    # authority over the process namespace.
    arguments = [program.path, "--unshare-all", "--uid", "0", "--gid", "0", "--new-session"]
    arguments += ["--as-pid-1", "--hostname", "grader", "--seccomp", str(refused)]
    # Inside, the warm process creates namespaces (SYS_ADMIN), maps root to an ordinary user in them (SETFCAP) and reads
    # the memory use of submissions that forbid it, by prctl(PR_SET_DUMPABLE) (SYS_PTRACE). Its forks drop all three.
    for capability in ("CAP_SYS_ADMIN", "CAP_SETFCAP", "CAP_SYS_PTRACE"):
        arguments += ["--cap-add", capability]
    for name in cgroups.ENVIRONMENT:
        arguments += ["--unsetenv", name]
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
    decides = f"{_ROOT}/hookedu/{_CHECKS.relative_to(_PACKAGE)}"
    arguments += ["--tmpfs", decides, "--remount-ro", decides]
    return [*arguments, "--remount-ro", "/", "--remount-ro", "/dev", "--chdir", home, "--"]


@contextlib.contextmanager
def _file_with(content: Any) -> Iterator[IO[bytes]]:
    """Open an unnamed file that holds this as JSON."""
    with tempfile.TemporaryFile() as file:
        file.write(json.dumps(content).encode())
        file.seek(0)
        yield file


def _pipe_with(data: bytes) -> int:
    """Return the read end of a pipe that holds these few bytes and is closed for writing."""
    reading, writing = os.pipe()
    with open(writing, "wb") as file:
        file.write(data)
    return reading


def _visible() -> list[str]:
    """Return the folders that Python needs: its own, its packages, the system's libraries and fonts."""
    # Where these are links, the links are made again: what they lead to is below /usr.
    system = [path for path in ("/bin", "/lib", "/lib32", "/lib64", "/sbin") if not os.path.islink(path)]
    wanted = [*_parts("/usr"), *system, "/etc/ld.so.cache", "/etc/fonts"]
    # An environment may itself be a link; what it leads to is then seen where Python looks for it.
    wanted += [
        *_parts(sys.prefix),
        *_parts(sys.base_prefix),
        os.path.dirname(os.path.realpath(sys.executable)),
    ]
    wanted += [path for path in sys.path if path and os.path.isdir(path) and path.endswith("-packages")]
    found: list[str] = []
    for path in map(os.path.abspath, wanted):
        inside = any(path == f or path.startswith(f.rstrip("/") + "/") for f in found)
        if os.path.exists(path) and not inside:
            found.append(path)
    return found


def _parts(prefix: str) -> list[str]:
    """Return what Python needs of the folder where it is installed, which need not be its own.

    /usr/local may hold a school's own things: nbgrader's exchange is in its `share`.
    """
    names = {
        "/usr": ("bin", "lib", "lib32", "lib64", "libexec", "sbin", "share"),
        "/usr/local": ("bin", "lib"),
    }
    return [os.path.join(prefix, name) for name in names[prefix]] if prefix in names else [prefix]


def _hidden() -> list[str]:
    """Return the folders with answers, words and checks that _visible() exposes: a wheel carries them all.

    The paths are those inside the sandbox, because a path to the packages may lead through a symbolic link.
    """
    folders = [*(catalog.ROOT / name for name in ("course", "lessons", "solutions")), _CHECKS]
    return [
        os.path.join(path, folder.relative_to(real))
        for path in _visible()
        for folder in folders
        if folder.is_dir() and folder.is_relative_to(real := Path(path).resolve())
    ]


def _environment(home: str) -> dict[str, str]:
    """Return the environment: of the instructor's only the language and where programs and libraries are."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL")}
    # The folders in the instructor's PATH may not exist inside; those of the system do.
    kept["PATH"] = os.pathsep.join(filter(None, (kept.get("PATH"), "/usr/local/bin", "/usr/bin", "/bin")))
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
