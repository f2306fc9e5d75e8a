"""Figures of a notebook at twice the resolution, at the same size on the page.

A figure of 6 inches has 600 pixels, too few for a screen that packs two of them into each point of the page: text
looks blurred. IPython's figure format "retina" draws twice as many, and tells the page the size of before.
"""

import sys


def double() -> None:
    """Give the figures of this kernel twice the pixels, unless somebody has chosen a format for them.

    Nothing outlives the kernel: other notebooks of the user keep what they have. Outside a Jupyter kernel, nothing is
    done at all.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or getattr(shell, "kernel", None) is None:
        return
    chosen = shell.config.InlineBackend
    if "figure_formats" in chosen or "figure_format" in chosen:
        return
    # Of the backend's modules only those that are there already: `import hookedu` does not load matplotlib.
    loaded = sys.modules.get("matplotlib_inline.config")
    if loaded is None or not loaded.InlineBackend.initialized():
        chosen.figure_formats = {"retina"}  # read when the first figure is made
    elif (backend := loaded.InlineBackend.instance()).figure_formats == {"png"}:
        backend.figure_formats = {"retina"}
