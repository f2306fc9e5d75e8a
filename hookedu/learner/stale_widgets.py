"""Replace the widgets of an earlier day, which JupyterLab would call an "Error", by a line that says how to get them back.

A widget lives in its kernel. When `hookedu lab` starts its server, no kernel of the folder runs any more, and what a saved
notebook says of a widget is only the name of something that is gone.
"""

from pathlib import Path
from typing import Any

from hookedu.language import Text, shown
from hookedu.learner.hand_outs import readable, write

_VIEW, _PICTURE = "application/vnd.jupyter.widget-view+json", "image/png"
_SAYS = Text(
    zh="这里原来有一个可以操作的控件。先运行上面的单元格，再运行这一个（Shift+Enter），它就回来了。",
    en="This was interactive. To bring it back, run the cells above and then this one (Shift+Enter).",
)


def replace_widgets(folder: Path) -> None:
    """Replace the widgets in the saved outputs of a folder's notebooks; nothing else changes.

    The still picture of a widget stays, and the line stands below it. A notebook that cannot be read or written stays
    as it is.
    """
    for path in sorted(folder.glob("*.ipynb")):
        try:
            notebook = readable(path.read_bytes())
            if notebook and any(
                _is_widget(output) for cell in notebook["cells"] for output in _outputs(cell)
            ):
                for cell in notebook["cells"]:
                    if outputs := _outputs(cell):
                        cell["outputs"] = [left for output in outputs for left in _left(output)]
                write(path, notebook)
        except OSError:
            continue


def _outputs(cell: dict[str, Any]) -> list[Any]:
    return cell.get("outputs") or []


def _is_widget(output: Any) -> bool:
    return isinstance(output, dict) and isinstance(data := output.get("data"), dict) and _VIEW in data


def _left(output: Any) -> list[Any]:
    """Return what an output leaves behind: of a widget its picture, if there is one, and the line."""
    if not _is_widget(output):
        return [output]
    line = {"text/html": shown(_SAYS.html()), "text/plain": str(_SAYS)}
    if _PICTURE not in output["data"]:
        return [output | {"data": line}]
    still = {kind: data for kind, data in output["data"].items() if kind != _VIEW}
    return [output | {"data": still}, {"output_type": "display_data", "data": line, "metadata": {}}]
