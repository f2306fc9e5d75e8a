"""Replace the widgets of an earlier day, which JupyterLab would call an "Error", by a line that says how to get them back.

A widget lives in its kernel. When `hookedu lab` starts its server, no kernel of the folder runs any more, and what a saved
notebook says of a widget is only the name of something that is gone.
"""

from pathlib import Path
from typing import Any

from hookedu.language import Text, shown
from hookedu.learner.hand_outs import Notebook, readable, write

_VIEW = "application/vnd.jupyter.widget-view+json"
_SAYS = Text(
    zh="这里原来有一个可以操作的控件。先运行上面的单元，再运行这一个（Shift+Enter），它就回来了。",
    en="This was interactive. To bring it back, run the cells above and then this one (Shift+Enter).",
)


def replace_widgets(folder: Path) -> None:
    """Replace the widgets in the saved outputs of a folder's notebooks; nothing else changes.

    A notebook that cannot be read or written stays as it is.
    """
    for path in sorted(folder.glob("*.ipynb")):
        try:
            notebook = readable(path.read_bytes())
            if notebook and (stale := _stale(notebook)):
                for output in stale:
                    output["data"] = {"text/html": shown(_SAYS.html()), "text/plain": str(_SAYS)}
                write(path, notebook)
        except OSError:
            continue


def _stale(notebook: Notebook) -> list[dict[str, Any]]:
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs") or ()]
    return [output for output in outputs if isinstance(output, dict) and _VIEW in (output.get("data") or ())]
