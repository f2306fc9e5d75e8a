"""An extension of IPython that imports torch while the learner reads: `hookedu lab` starts its kernels with it."""

import threading
from importlib import import_module
from typing import Any


def load_ipython_extension(_: Any) -> None:
    """Import torch in a thread; a cell that needs it sooner waits for it.

    That takes two seconds, and the first cell of every lesson imports it.
    """
    threading.Thread(target=import_module, args=["torch"], name=__name__, daemon=True).start()
