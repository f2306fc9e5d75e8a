"""The worker process: a fork of the warm process that runs one submission; untrusted once its first cell has run.

The job arrives as a dict, the learner's cells in a file of their own. Events are sent over the channel, each as one
line of JSON:

    {"ready": true}                       the lesson's own setup cells have run
    {"step": 3, "probe": "02.1"}          what comes next: a cell, or (not "") the check of an exercise after it
    {"exercise": "02.1", "record": {...}}     see hookedu.exercises.probing; in the order of the job
    {"reached": "gc.get_objects"}         at any time after that: see hookedu.grading.run.backstage
    {"done": true, "out_of_memory": false}
    {"failed": "..."}                     instead of ready: the grader's own fault, no code of a learner has run yet

The job contains neither expectations nor verdicts. Printed output goes to the null device; input() reads end of file.
"""

import ast
import contextlib
import dataclasses
import gc
import importlib
import json
import os
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

MEMORY_GONE = 77  # exit code: there was not enough memory left to send the next line

Send = Callable[[dict[str, Any]], None]
# State that the warm process makes once: the shell, the setups and exercises whose imports are loaded, the setups
# compiled, how much memory it takes, and hookedu's modules as they are.
_warm: dict[str, Any] = {"prepared": set(), "setup": {}}
# Modules that torch, IPython and hookedu import on first use, which would be in every fork.
_LATE = (
    "bdb",
    "platformdirs.unix",
    "torch.fx.experimental.symbolic_shapes",  # by `backward(gradient)`; it brings sympy
    "torch.nested._internal.nested_tensor",
    "torch.utils._device",
    "yaml",
)


def warm_up() -> None:
    """Load, once for all submissions, what every lesson needs.

    Nothing here may start a thread: only the forking thread continues to run in the child.
    """
    import ipywidgets  # noqa: F401
    import matplotlib.pyplot
    import torch

    import hookedu
    import hookedu.grading.run.backstage
    from hookedu.grading.run.shell import silent_shell

    torch.set_num_threads(1)
    # On first use torch reads the processor's features from /proc; in a submission's sandbox that would raise.
    torch.ones(1).half()
    matplotlib.pyplot.figure().canvas.draw()  # makes matplotlib find its fonts
    matplotlib.pyplot.close()
    for name in hookedu.__all__:
        getattr(hookedu, name)
    for name in _LATE:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    _warm["shell"] = silent_shell()


def is_prepared(job: dict[str, Any]) -> bool:
    """Check whether what the lesson of a job needs is loaded."""
    return _wanted(job) <= _warm["prepared"]


def _wanted(job: dict[str, Any]) -> set[str]:
    return {*job["setup"], *(exercise for probes in job["probes"] for exercise in probes)}


def prepare(job: dict[str, Any]) -> None:
    """Load what one lesson needs, once for all its submissions.

    That is its exercises and what its own setup cells import, which may be seconds of torchvision. Only the imports run
    here: whatever else those cells do, each submission does for itself.
    """
    from hookedu.grading.run.backstage import Modules

    _warm["prepared"] |= _wanted(job)
    with contextlib.suppress(Exception):  # the fork runs into the same error and reports it
        for cell in job["setup"]:
            tree = _unseen(cell)
            _warm["setup"][cell] = compile(tree, "<setup>", "exec")
            imports: list[ast.stmt] = [n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
            exec(compile(ast.Module(imports, []), "<setup>", "exec"), {})
        for probe in {probe.id: probe for found in _probes(job) for probe in found}.values():
            _rehearse(probe)
        if compiler := sys.modules.get("torch._dynamo"):
            compiler.reset()  # what it has compiled for a rehearsal it keeps with hookedu's own modules
    if sys.platform == "linux":
        with open("/proc/self/statm") as pages:
            _warm["data"] = int(pages.read().split()[5]) * resource.getpagesize()
    _warm.pop("modules", None)  # so that the new ones do not contain the old ones
    # In a fork, a full collection would look at everything that torch has brought, and copy the memory of it all: 250 ms.
    gc.collect()
    _warm["modules"] = Modules()
    gc.freeze()


def _rehearse(probe: Any) -> None:
    """Run a cell that answers nothing, and probe the answer: no fork then need load, compile and look up what it uses.

    That is a fifth of a submission's time, and seconds where a probe makes torch load its compiler. Only code of
    hookedu's own runs here. Where there is an accelerator, autograd starts threads, which forks would miss: not there.
    """
    import torch

    from hookedu.exercises.observation import dumps
    from hookedu.exercises.probing import observe

    if not torch.accelerator.is_available():
        shell = _warm["shell"]
        shell.run_cell(f"def {probe.answer}(*given, **named): pass", silent=True, store_history=False)
        dumps(observe(probe, shell.user_ns.pop(probe.answer), range(probe.cases)))


def _unseen(cell: str) -> ast.Module:
    """Parse a lesson's own setup cell without its `LanguageToggle()`, which takes as long as an exercise to build."""
    tree = ast.parse(cell)
    tree.body = [n for n in tree.body if ast.unparse(n) != "LanguageToggle()"]
    return tree


def main(job: dict[str, Any], cells: int, channel: int, place: Callable[[], str], isolated: bool) -> NoReturn:
    """Run one job and exit via os._exit, skipping a learner's exit handlers and threads.

    Parameters
    ----------
    job : dict
        The job, see `runner.run`.
    cells : int
        File descriptor of the learner's cells, a list of sources as JSON.
    channel : int
        File descriptor of the pipe for the results.
    place : callable
        Prepares the submission's own folder and everything else that is needed before its first cell, and returns the
        folder's path.
    isolated : bool
        Whether the process has its own namespaces.
    """
    lock = threading.RLock()
    send = _sender(channel, lock)
    try:
        from hookedu.grading.run import backstage

        modules = _warm.pop("modules")
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _move_in(place())
        with open(cells, "rb") as file:
            sources = json.loads(file.read())
        submission = _Submission(job, sources)
        _limit(job["limits"], isolated)
    except BaseException:
        send({"failed": traceback.format_exc(limit=-3)[-2000:]})
        os._exit(1)
    try:
        send({"ready": True})
        submission.run(send, backstage.watch(backstage.teller(channel, lock), modules))
        send({"done": True, "out_of_memory": submission.out_of_memory})
    except MemoryError:
        os._exit(MEMORY_GONE)
    except BaseException:
        os._exit(1)
    os._exit(0)


def _sender(channel: int, lock: threading.RLock) -> Send:
    """Return a function that writes messages to the channel; programs that a learner starts do not inherit it.

    A child of a learner's `os.fork()` comes here as well, if nothing has ended it. It ends here: sent twice, honest
    results would be taken for forged ones.
    """
    from hookedu.exercises.observation import MAX_BYTES, dumps

    os.set_inheritable(channel, False)
    mine, getpid, leave = os.getpid(), os.getpid, os._exit
    # `encode` bounds each value of a record, but many of them may be too large together. That is an error in the answer;
    # sent, the grader would have to take it for a forgery.
    says = f"what the answer produced cannot be observed: more than {MAX_BYTES} bytes"
    error = {"type": "ValueError", "message": says, "frames": []}
    too_large = {"status": "raised", "error": error, "observations": []}

    def send(message: dict[str, Any]) -> None:
        if getpid() != mine:
            leave(0)
        line = dumps(message).encode("utf-8", "replace") + b"\n"
        if len(line) > MAX_BYTES and "record" in message:
            return send(message | {"record": too_large})
        with lock:
            while line:
                line = line[os.write(channel, line) :]

    return send


def _move_in(home: str) -> None:
    """Make the submission's own folder its home, also for programs that it starts."""
    os.chdir(home)
    places = {
        "HOME": "",
        "TMPDIR": "",
        "XDG_DATA_HOME": "data",
        "XDG_CONFIG_HOME": "config",
        "XDG_CACHE_HOME": "cache",
    }
    for name, place in places.items():
        os.environ[name] = os.path.join(home, place) if place else home
    import tempfile

    tempfile.tempdir = None  # discard the cached folder


def _limit(limits: dict[str, int], isolated: bool) -> None:
    """Set the resource limits from here on; what torch and the setup have used does not count."""
    used = sum(os.times()[:2])
    bounds = [
        # Only writable memory counts: torch reserves far more address space than it uses.
        ("RLIMIT_DATA", _warm.get("data", 0) + limits["memory"]),
        ("RLIMIT_CPU", int(used) + limits["seconds"] + 1),
        ("RLIMIT_FSIZE", limits["file"]),
        ("RLIMIT_NOFILE", 256),
        ("RLIMIT_CORE", 0),
    ]
    if isolated:  # without isolation the kernel would also count every process of the instructor
        bounds.append(("RLIMIT_NPROC", limits["processes"]))
    for name, value in bounds:
        which = getattr(resource, name)
        hard = resource.getrlimit(which)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))


def _probes(job: dict[str, Any]) -> list[list[Any]]:
    """Return for each cell to run the probes to run after it."""
    from hookedu.exercises import probes

    return [list(map(probes.find, names)) for names in job["probes"]]


class _Submission:
    """The cells of one notebook, run in one IPython shell."""

    def __init__(self, job: dict[str, Any], sources: list[str]):
        from hookedu.exercises import probing

        # Kept here, because a cell may replace them in their modules.
        self._probe, self._describe = probing.observe, probing.describe_error
        # Copies of the probes, for the same reason.
        copies = [[dataclasses.replace(probe) for probe in found] for found in _probes(job)]
        self._steps = list(zip(sources, copies, strict=True))
        self._seeds = job["seeds"]
        self._shell = _warm["shell"]
        self.out_of_memory = False
        for cell in job["setup"]:
            exec(_warm["setup"].get(cell) or compile(_unseen(cell), "<setup>", "exec"), self._shell.user_ns)

    def run(self, send: Send, put_back: Callable[[], None]) -> None:
        """Run every cell in order, even if an earlier one failed, and probe each exercise after its cell.

        `put_back` undoes what a cell or an answer did to hookedu's own modules.
        """
        for number, (source, probes) in enumerate(self._steps):
            send({"step": number, "probe": ""})
            error = self._run_cell(source)
            put_back()
            for probe in probes:
                send({"step": number, "probe": probe.id})
                record = self._observe(probe, error)
                put_back()
                send({"exercise": probe.id, "record": record})

    def _run_cell(self, source: str) -> BaseException | None:
        try:
            result = self._shell.run_cell(source, silent=True, store_history=False)
            # Not `or`: the learner's exception may define __bool__.
            error = result.error_in_exec if result.error_before_exec is None else result.error_before_exec
        except BaseException as caught:  # IPython itself failed on the cell
            error = caught
        if error is not None:
            self._note_memory(self._describe(error))
        return error

    def _observe(self, probe: Any, error: BaseException | None) -> dict[str, Any]:
        """Return the record of an exercise; as in a notebook, a cell that fails keeps an earlier definition."""
        if probe.answer not in self._shell.user_ns:
            if error is None:
                error = NameError(f"name '{probe.answer}' is not defined")
            return {"status": "raised", "error": self._describe(error), "observations": []}
        answer = self._shell.user_ns[probe.answer]
        try:
            record = self._probe(probe, answer, self._seeds[probe.id])
        except KeyboardInterrupt as interrupt:  # nobody can press stop here: the learner's code raised it
            return {"status": "raised", "error": self._describe(interrupt), "observations": []}
        if record["status"] == "raised":
            self._note_memory(record["error"])
        return record

    def _note_memory(self, error: dict[str, Any]) -> None:
        # Python raises MemoryError, torch a RuntimeError with this message.
        gone = error["type"] == "MemoryError" or "can't allocate memory" in error["message"]
        self.out_of_memory |= gone
