"""Lifetime of widgets: a widget that is no longer displayed must not stay in the kernel."""

import weakref
from collections.abc import Iterator

import ipywidgets

# notebook cell -> its last execution, and the widgets that this execution created
_shown: dict[str, tuple[str, list["weakref.ref[ipywidgets.Widget]"]]] = {}


def end_earlier_run(widget: ipywidgets.Widget) -> None:
    """Register `widget`, and close those of earlier executions of this cell, whose output is replaced."""
    cell, execution = this_cell()
    if cell is None:
        return
    last, widgets = _shown.get(cell, (execution, []))
    if last != execution:
        for reference in widgets:
            if (earlier := reference()) is not None:
                earlier.close()
        widgets = []
    _shown[cell] = execution, [*widgets, weakref.ref(widget)]


def close_with_parts(widget: ipywidgets.Widget) -> None:
    """Close a widget and all its parts, and remove their observers."""
    for part in _parts(widget):
        part.unobserve_all()
        ipywidgets.Widget.close(part)


def _parts(widget: ipywidgets.Widget) -> Iterator[ipywidgets.Widget]:
    """Yield a widget and all widgets that it holds (children, layouts, styles), the innermost first."""
    found, todo = {}, [widget]
    while todo:
        part = todo.pop()
        if part in found or part.comm is None:
            continue
        found[part] = None
        for name in part.keys:
            value = getattr(part, name)
            todo += [
                v
                for v in (value if isinstance(value, list | tuple) else [value])
                if isinstance(v, ipywidgets.Widget)
            ]
    return reversed(found)


def this_cell() -> tuple[str | None, str]:
    """Return the IDs of the current notebook cell (None outside notebooks) and of its execution."""
    from IPython import get_ipython

    shell = get_ipython()
    if not hasattr(shell, "get_parent"):  # not in a notebook
        return None, ""
    request = shell.get_parent()
    content, header = request.get("content", {}), request.get("header", {})
    return request.get("metadata", {}).get("cellId") or content.get("code"), header.get("msg_id", "")
