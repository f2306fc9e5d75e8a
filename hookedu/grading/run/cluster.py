"""Run submissions on a Dask cluster: the same jobs, run by the cluster's workers, each with its own warm sandbox.

Reading, matching and judging stay with the grader. A worker receives what a fork receives (cells, seeds, limits), and
returns what the fork sent, read by the same rules on the machine where it ran. The cluster belongs to the instructor:
its scheduler and workers are trusted as the grader is, and like any Dask cluster they must not be reachable by others.
Losing a worker loses nothing: Dask reassigns its submissions to another one.
"""

import concurrent.futures
import threading
from typing import cast

from hookedu.catalog import CourseError
from hookedu.grading.limits import Limits
from hookedu.grading.matching import Plan
from hookedu.grading.run.runner import BatchStopped, Run, run
from hookedu.grading.run.sandbox import Sandbox
from hookedu.language import Text

try:
    from distributed import Client, Future, TimeoutError, Worker, get_worker
    from distributed.diagnostics.plugin import WorkerPlugin
except ImportError:
    raise CourseError(
        Text(
            zh="`--dask` 需要 `distributed`：运行 `pip install 'hookedu[cluster]'`。",
            en="`--dask` needs `distributed`: run `pip install 'hookedu[cluster]'`.",
        )
    ) from None

_PATIENCE = 10.0  # seconds for the scheduler to answer and for a worker to be present
_TICK = 0.1  # seconds between two checks for a stop request
_AHEAD = 2  # submissions in flight per thread of the cluster, so that no thread waits for the grader

_UNREACHABLE = Text(
    zh="连不上 Dask 调度器 `{address}`：{error}。检查地址，确认 `dask scheduler` 在运行；已评的成绩都还在。",
    en="The Dask scheduler `{address}` cannot be reached: {error}. Check the address, and that `dask scheduler` runs; "
    "all grades written before are still there.",
)
_NO_WORKERS = Text(
    zh="Dask 集群 `{address}` 没有工作进程：运行 `dask worker {address}`。",
    en="The Dask cluster `{address}` has no workers: run `dask worker {address}`.",
)
_UNFIT = Text(
    zh="Dask 集群 `{address}` 的工作进程不能评分：{error}。它们需要和这里相同版本的 hookedu。",
    en="The workers of the Dask cluster `{address}` cannot grade: {error}. They need the same version of hookedu as "
    "here.",
)


class Cluster:
    """Backend on a Dask cluster; connects when it is created.

    Parameters
    ----------
    address : str
        Address of the scheduler.
    isolated : bool
        Run submissions in a sandbox.
    limits : Limits
        Resource limits per submission.

    Raises
    ------
    CourseError
        If the scheduler cannot be reached, has no workers, or its workers cannot start a sandbox.
    """

    def __init__(self, address: str, isolated: bool, limits: Limits):
        self._limits = limits
        try:
            self._client = Client(address, timeout=_PATIENCE, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise CourseError(_UNREACHABLE.format(address=address, error=_first_line(error))) from None
        try:
            self._client.wait_for_workers(1, timeout=_PATIENCE)
            self._client.register_plugin(_Warm(isolated, limits.startup), name=_Warm.name)
            # distributed types it as if every client were asynchronous.
            threads = cast("dict[str, int]", self._client.nthreads())
            self.jobs = _AHEAD * sum(threads.values())
        except TimeoutError:
            self._client.close()
            raise CourseError(_NO_WORKERS.format(address=address)) from None
        except Exception as error:
            self._client.close()
            raise CourseError(_UNFIT.format(address=address, error=_first_line(error))) from None

    def run(
        self, plan: Plan, setup: tuple[str, ...], seeds: dict[str, tuple[int, ...]], stop: threading.Event
    ) -> Run:
        """Run a plan on one of the workers; raise BatchStopped if `stop` is set before it has ended."""
        future: Future = self._client.submit(_run_there, plan, setup, seeds, self._limits, pure=False)
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        while not done.wait(_TICK):
            if stop.is_set():
                future.cancel()
                raise BatchStopped
        try:
            return future.result(timeout=_PATIENCE)
        except concurrent.futures.CancelledError:
            raise BatchStopped from None
        finally:
            future.release()

    def close(self) -> None:
        """End the sandboxes and disconnect; the cluster keeps running."""
        try:
            self._client.unregister_worker_plugin(_Warm.name)
        finally:
            self._client.close()


class _Warm(WorkerPlugin):
    """One sandbox per worker for the duration of a batch, also in workers that join later."""

    name = "hookedu-sandbox"
    sandbox: Sandbox  # exists in the workers only

    def __init__(self, isolated: bool, startup: float):
        self._isolated, self._startup = isolated, startup

    def setup(self, worker: Worker) -> None:
        """Create the sandbox; Dask calls this in each worker."""
        self.sandbox = Sandbox(self._isolated, self._startup)

    def teardown(self, worker: Worker) -> None:
        """Close the sandbox; Dask calls this in each worker."""
        self.sandbox.close()


def _run_there(plan: Plan, setup: tuple[str, ...], seeds: dict[str, tuple[int, ...]], limits: Limits) -> Run:
    """Run a submission in a thread of a worker."""
    warm = get_worker().plugins[_Warm.name]
    assert isinstance(warm, _Warm)
    return run(plan, setup, seeds, limits, warm.sandbox, threading.Event())


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
