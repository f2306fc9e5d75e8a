"""Drawing of a model as nested boxes: HTML, so that it follows the theme and screen readers can read it."""

from dataclasses import dataclass, field
from html import escape

from torch import nn

_WHOLE = 40  # models of this many modules or more are drawn only around the highlighted module
_AROUND = 5  # siblings to either side of it


@dataclass
class Box:
    """One module of the drawing; `inside` is the number of its descendants."""

    path: str
    type: str
    children: list["Box"] = field(default_factory=list)
    inside: int = 0

    @classmethod
    def of(cls, module: nn.Module, path: str = "") -> "Box":
        """Return the boxes of a module and its descendants."""
        children = [
            cls.of(child, f"{path}.{name}" if path else name) for name, child in module.named_children()
        ]
        return cls(path, type(module).__name__, children, sum(1 + child.inside for child in children))

    def html(self, lit: str, note: str, back: bool) -> str:
        """Return the drawing; a frame, an arrow (reversed if `back`) and `note` mark the module `lit`."""
        return f'<div class="hookedu-model">{self._html(lit, note, back, self.inside < _WHOLE)}</div>'

    def _html(self, lit: str, note: str, back: bool, whole: bool) -> str:
        here = self.path == lit
        on_the_way = here or not self.path or lit.startswith(f"{self.path}.")
        name = f"<code>{escape(self.path.rpartition('.')[2] or '(model)')}</code> {escape(self.type)}"
        if here:
            name = f'{"◀" if back else "▶"} {name} <span class="hookedu-note">{escape(note)}</span>'
        inside = ""
        if self.children and (whole or on_the_way):
            inside = "".join(
                child if isinstance(child, str) else child._html(lit, note, back, whole)
                for child in self._in_view(lit, whole)
            )
            inside = f"<div>{inside}</div>"
        elif self.children:
            name += f" <small>⊞ {self.inside}</small>"
        return f'<div class="hookedu-box{" hookedu-lit" if here else ""}">{name}{inside}</div>'

    def _in_view(self, lit: str, whole: bool) -> list["Box | str"]:
        """Return the children to draw, and HTML with the number of those left out before and after them."""
        if whole or len(self.children) <= 2 * _AROUND + 1:
            return list(self.children)
        at = next((i for i, c in enumerate(self.children) if f"{lit}.".startswith(f"{c.path}.")), 0)
        first = min(max(at - _AROUND, 0), len(self.children) - 2 * _AROUND - 1)
        last = first + 2 * _AROUND + 1
        before, after = first, len(self.children) - last
        return [
            *([f"<small>⋯ {before}</small>"] if before else []),
            *self.children[first:last],
            *([f"<small>⋯ {after}</small>"] if after else []),
        ]
