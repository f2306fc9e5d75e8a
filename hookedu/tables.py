"""Tables of plain values: text for a terminal, HTML for a notebook."""

from collections.abc import Sequence
from html import escape
from typing import Any


class Table:
    """A table that prints as aligned text and shows as an HTML table in a notebook.

    Columns of numbers are aligned to the right. The caption stands below the text, and above the HTML table. Of more
    than `MAX_ROWS` rows the first and the last ones are shown; `rows` has all of them.

    >>> print(Table(["layer", "calls"], [["conv1", 1], ["relu", 16]]))
    layer  calls
    -----  -----
    conv1      1
    relu      16
    """

    MAX_ROWS = 200

    def __init__(self, headers: Sequence[str], rows: Sequence[Sequence[Any]], caption: str = "") -> None:
        self.headers, self.rows, self.caption = list(headers), [list(row) for row in rows], caption

    def _shown(self) -> tuple[list[list[Any]], int]:
        """Return the rows to show and how many are left out after the first half of them."""
        left_out = len(self.rows) - self.MAX_ROWS
        if left_out <= 0:
            return self.rows, 0
        half = self.MAX_ROWS // 2
        return [*self.rows[:half], *self.rows[-half:]], left_out

    def __str__(self) -> str:
        rows, left_out = self._shown()
        cells = [self.headers, *([_text(cell) for cell in row] for row in rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.headers))]
        right = [
            bool(rows) and all(isinstance(row[i], (int, float)) for row in rows) for i in range(len(widths))
        ]
        lines = [
            "  ".join(
                cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right, strict=True)
            ).rstrip()
            for row in cells
        ]
        lines.insert(1, "  ".join("-" * width for width in widths))
        if left_out:
            lines.insert(2 + self.MAX_ROWS // 2, f"… {left_out:,} more rows …")
        return "\n".join([*lines, self.caption] if self.caption else lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(header)}</th>" for header in self.headers)
        rows, left_out = self._shown()
        lines = [
            "<tr>" + "".join(f"<td>{escape(_text(cell))}</td>" for cell in row) + "</tr>" for row in rows
        ]
        if left_out:
            gap = f'<tr><td colspan="{len(self.headers)}">… {left_out:,} more rows …</td></tr>'
            lines.insert(self.MAX_ROWS // 2, gap)
        body = "".join(lines)
        caption = f"<caption>{escape(self.caption)}</caption>" if self.caption else ""
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell)


def size_text(count: int) -> str:
    """Return a number of bytes as text with a decimal unit: `784 B`, `12.3 kB`, `345.0 MB`."""
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"
