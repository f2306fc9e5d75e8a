"""Time that a call takes by itself, whatever else the process and the machine are doing."""

import contextlib
import gc
import time

_TRIES = 3  # a slow case is slow each time; a busy machine is not


@contextlib.contextmanager
def _without_collections():
    """Keep garbage collection away: its cost is that of the objects of all tests before."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def cpu_seconds(call, enough=0.0):
    """Return the least CPU time of up to three calls, in seconds.

    Parameters
    ----------
    call : callable
        Takes no arguments.
    enough : float, optional
        No further call is made after one that took less than this many seconds.
    """
    least = float("inf")
    for _ in range(_TRIES):
        with _without_collections():
            begun = time.process_time()
            call()
            least = min(least, time.process_time() - begun)
        if least < enough:
            break
    return least
