"""How long widgets live: one that nobody can see any more must not stay in the kernel."""

import weakref
from collections.abc import Iterator

import ipywidgets

# The widgets of each notebook cell, and the execution that made them.
_shown: dict[str, tuple[str, list["weakref.ref[ipywidgets.Widget]"]]] = {}


def end_earlier_run(widget: ipywidgets.Widget) -> None:
    """A cell that runs again replaces its output: close the widgets that it showed before this one."""
    cell, execution = _cell()
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
    """Close a widget and everything that it is made of, and let go of who observes them."""
    for part in _parts(widget):
        part.unobserve_all()
        ipywidgets.Widget.close(part)


def _parts(widget: ipywidgets.Widget) -> Iterator[ipywidgets.Widget]:
    """Children, layouts and styles are widgets too; the innermost come first."""
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


def _cell() -> tuple[str | None, str]:
    """The notebook cell that is being executed, and a name for this execution of it."""
    from IPython import get_ipython

    shell = get_ipython()
    if not hasattr(shell, "get_parent"):  # no notebook
        return None, ""
    request = shell.get_parent()
    content, header = request.get("content", {}), request.get("header", {})
    return request.get("metadata", {}).get("cellId") or content.get("code"), header.get("msg_id", "")
