"""Several processes of one program, as distributed training starts them, from a notebook: they end together.

A notebook cannot hand its own functions to new processes, so the program is a script. This is what `torchrun` does,
in small: no port is asked for (the processes find each other through a file), and none of them is ever left behind.
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
_LOOK = 0.02  # seconds between two looks at who has ended
# The program, then an end without farewell: gloo's threads may still be letting go of a callback, and meeting them in
# an interpreter that shuts down aborts the process ("terminate called without an active exception") now and then.
_MAIN = """
import os, sys
del sys.argv[0]
exec(compile(open(sys.argv[0], "rb").read(), sys.argv[0], "exec"))
sys.stdout.flush(), sys.stderr.flush(), os._exit(0)
"""
_WORDS = 1500  # characters of a failed process' last words


class RanksFailed(RuntimeError):
    """A process failed or the time was up; `says` tells which and how, with its last words."""

    def __init__(self, says: Text):
        self.says = says
        super().__init__(str(says))


def run_ranks(script: str, n: int = 2, *, timeout: float = 100) -> list[str]:
    """Run a script in `n` Python processes at once; return what each printed, in the order of ranks.

    script: the program's text. Each process finds in `sys.argv[1:]` its rank, `n`, and the `init_method` for
        `torch.distributed.init_process_group`, a `file://` URL. Handlers of `atexit` do not run.
    timeout: seconds, after which all of them are killed.

    Raises RanksFailed where a process fails or the time is up. No process is left, not even after an interruption.
    """
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
    if (
        sys.platform in _LOOPBACK
    ):  # else gloo looks up the machine's name, which leads nowhere without a network
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
            zh="进程 {rank} 出错了（退出码 {code}），其余的已停止。它最后说：\n{words}",
            en="Rank {rank} failed (exit code {code}), and the others were stopped. Its last words:\n{words}",
        ).format(rank=failed, code=code, words=said[failed][1][-_WORDS:].strip())
    )


def _wait(ranks: list[subprocess.Popen], timeout: float) -> tuple[int | None, int | None]:
    """Until all have ended: (None, None); or until one fails: its rank and exit code; or the time is up: a rank that
    has not ended, and None."""
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
    with file:
        file.seek(0)
        return file.read().decode("utf-8", "replace")
