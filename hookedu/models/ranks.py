"""Run a script in several processes from a notebook, as distributed training does.

The program is a script because a notebook cannot pass its functions to new processes. This is a small
`torchrun` that needs no port, as the processes find each other through a file, and that never leaves a
process behind.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import BinaryIO

from hookedu.language import Text

_LOOPBACK = {"linux": "lo", "darwin": "lo0"}
_LOOK = 0.02  # seconds between two polls of the processes
# Run the program, then exit via os._exit, skipping exit handlers: gloo's threads may still be releasing a
# callback, and doing so while the interpreter shuts down sometimes aborts the process ("terminate called
# without an active exception").
_MAIN = """
import os, sys
del sys.argv[0]
exec(compile(open(sys.argv[0], "rb").read(), sys.argv[0], "exec"))
sys.stdout.flush(), sys.stderr.flush(), os._exit(0)
"""
_WORDS = 1500  # characters kept of the tail of a failed process's stderr


class RanksFailed(RuntimeError):
    """A process failed or the time ran out; `says` names it, with the tail of its stderr if it failed."""

    def __init__(self, says: Text):
        self.says = says
        super().__init__(str(says))


def run_ranks(script: str, n: int = 2, *, timeout: float = 100) -> list[str]:
    """Run a script in `n` Python processes at once, and return the stdout of each.

    No process is left running, not even after a KeyboardInterrupt.

    Parameters
    ----------
    script : str
        The source of the program. In each process `sys.argv[1:]` holds its rank, `n`, and the `init_method`
        for `torch.distributed.init_process_group`, a `file://` URL. Handlers registered with `atexit` do not
        run.
    n : int
        Number of processes.
    timeout : float
        Seconds after which all processes are killed.

    Returns
    -------
    list of str
        What each process has printed, by rank.

    Raises
    ------
    RanksFailed
        If a process exits with an error, or the time runs out.
    """
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
    # Otherwise gloo resolves the host name, which fails without a network.
    if sys.platform in _LOOPBACK:
        environment.setdefault("GLOO_SOCKET_IFNAME", _LOOPBACK[sys.platform])
    ranks: list[subprocess.Popen] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        program = Path(folder, "program.py")
        program.write_text(script, encoding="utf-8")
        meeting_point = Path(folder, "meeting_point").as_uri()
        files = [[open(Path(folder, f"{kind}{i}"), "w+b") for kind in ("out", "err")] for i in range(n)]  # noqa: SIM115 (closed by _read)
        try:
            for i, (out, err) in enumerate(files):
                command = [sys.executable, "-c", _MAIN, str(program), str(i), str(n), meeting_point]
                ranks.append(
                    subprocess.Popen(
                        command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment
                    )
                )
            failed, code = _wait(ranks, timeout)
        finally:
            for rank in ranks:
                rank.kill()
            for rank in ranks:
                rank.wait()
            said = [[_read(file) for file in pair] for pair in files]
    if failed is None:
        return [out for out, _ in said]
    if code is None:
        raise RanksFailed(
            Text(
                zh="{timeout:g} 秒到了，进程 {rank} 还没有结束，已全部停止。它们多半在互相等待：每个进程都要做同样多次通信。",
                en="After {timeout:g} seconds rank {rank} had not ended, and all were stopped. Most likely they wait for "
                "each other: every process must communicate equally often.",
            ).format(timeout=timeout, rank=failed)
        )
    raise RanksFailed(
        Text(
            zh="进程 {rank} 出错了（退出码 {code}），其余的已停止。它的 stderr 最后几行：\n{words}",
            en="Rank {rank} failed (exit code {code}), and the others were stopped. The tail of its stderr:\n{words}",
        ).format(rank=failed, code=code, words=said[failed][1][-_WORDS:].strip())
    )


def _wait(ranks: list[subprocess.Popen], timeout: float) -> tuple[int | None, int | None]:
    """Wait until all processes have ended, one has failed, or the time has run out.

    Return (None, None), the rank and exit code of the failed process, or a rank still running and None,
    respectively.
    """
    deadline = time.monotonic() + timeout
    while True:
        codes = [rank.poll() for rank in ranks]
        for rank, code in enumerate(codes):
            if code:
                return rank, code
        if None not in codes:
            return None, None
        if time.monotonic() > deadline:
            return codes.index(None), None
        time.sleep(_LOOK)


def _read(file: BinaryIO) -> str:
    """Return the content of a file and close it."""
    with file:
        file.seek(0)
        return file.read().decode("utf-8", "replace")
