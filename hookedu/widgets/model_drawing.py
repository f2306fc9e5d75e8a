"""What HookTimeline draws of a model: its modules as nested boxes, with repeats folded, and its hooks as marks on them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from hookedu.hooks.events import Event

_BOXES = 20  # that are open from the start, if a whole level of the model fits
_MANY = 8  # modules side by side: more of them are folded
_ENDS = 4  # of those that are not alike, so many are drawn at either end
_ROWS = 4  # names of parameters in a box
INSIDE = "inside"  # the mark of all hooks inside a closed box


@dataclass
class Box:
    """One box: a module, or several side by side. If they are built alike, the box shows the inside of all of them."""

    paths: list[str]
    name: str
    type: str
    alike: bool = True


class Boxes:
    """The boxes of a model, which stay where they are while a run is played.

    Parameters
    ----------
    modules : mapping of str to torch.nn.Module
        The modules by name, each after the one that it is in.
    events : sequence of Event
        What happened: modules side by side stand in the order in which they were called.
    """

    def __init__(self, modules: Mapping[str, nn.Module], events: Sequence[Event]) -> None:
        self._types = {path: type(module).__name__ for path, module in modules.items()}
        self._chains = {path for path, module in modules.items() if _is_chain(module)}
        self._called: dict[str, int] = {}
        for event in events:
            self._called.setdefault(event.path, event.order)
        # When something ran in each module: a list of modules is never called itself.
        self._ran = dict(self._called)
        self._inside: dict[str, list[str]] = {path: [] for path in modules}
        for path in modules:
            if path:
                self._inside[path.rpartition(".")[0]].append(path)
        # Two modules have the same number if they and all that is in them have the same types in the same order.
        self._structure: dict[str, int] = {}
        known: dict[tuple[Any, ...], int] = {}
        never = len(events)
        for path in reversed(self._types):  # what is inside comes first
            inside = self._inside[path]
            inside.sort(key=lambda each: self._ran.get(each, never))
            began = min(self._ran.get(each, never) for each in (path, *inside))
            if began < never:
                self._ran[path] = began
            alike = tuple(self._structure[each] for each in inside)
            key = (self._types[path], path in self._called, path in self._ran, alike)
            self._structure[path] = known.setdefault(key, len(known))
        self._depth = self._fitting()

    def _fitting(self) -> int:
        """Return how many levels of the model there is room for."""
        level, boxes, depth = self._at([[""]]), 1, 0
        while level := [child for box in level for child in self._children(box)]:
            boxes += len(level)
            if boxes > _BOXES:
                break
            depth += 1
        return max(depth, 1)

    def _at(self, groups: Iterable[list[str]]) -> list[Box]:
        """Return a box for each group of modules that are built alike."""
        return [self._box(paths) for paths in groups]

    def _box(self, paths: list[str], alike: bool = True) -> Box:
        first, last = (path.rpartition(".")[2] for path in (paths[0], paths[-1]))
        if not alike:
            return Box(paths, "⋯", f"×{len(paths)}", alike=False)
        if len(paths) == 1:
            return Box(paths, first or "(model)", self._types[paths[0]])
        name = first if first == last else f"{first} … {last}"  # within a stack all have the same name
        return Box(paths, name, f"{self._types[paths[0]]} ×{len(paths)}")

    def _children(self, box: Box) -> list[Box]:
        """Return the boxes inside a box; there are few, however many modules it holds."""
        if not box.alike:
            return []
        groups = [list(group) for group in zip(*(self._inside[path] for path in box.paths), strict=True)]
        if len(groups) > _MANY:
            runs: list[list[str]] = []
            for group in groups:
                if runs and self._structure[runs[-1][0]] == self._structure[group[0]]:
                    runs[-1] += group
                else:
                    runs.append(group)
            groups = runs
        if len(groups) <= _MANY:
            return self._at(groups)
        between = [path for group in groups[_ENDS:-_ENDS] for path in group]
        return [*self._at(groups[:_ENDS]), self._box(between, alike=False), *self._at(groups[-_ENDS:])]

    def drawn(self, turned: set[str], events: Sequence[Event]) -> tuple[dict[str, Any], list[int]]:
        """Return the boxes and marks as the browser gets them, and the mark of each event.

        `turned` are the boxes that the reader has opened or closed, by the path of their first module.
        """
        boxes: list[dict[str, Any]] = []
        place: dict[str, tuple[int, bool]] = {}  # module -> its box, and whether it is inside of a closed one
        todo = [(self._box([""]), -1, 0)]
        while todo:
            box, parent, depth = todo.pop()
            number, first = len(boxes), box.paths[0]
            children = self._children(box)
            is_open = bool(children) and (depth < self._depth) != (first in turned)
            inside = [path for path in box.paths for path in self._below(path)] if not is_open else []
            place |= dict.fromkeys(inside, (number, True)) | dict.fromkeys(box.paths, (number, False))
            boxes.append(
                {
                    "path": first,
                    "name": box.name,
                    "type": box.type,
                    "parent": parent,
                    "open": is_open,
                    "folds": bool(children) and depth > 0,
                    "inside": len(inside),
                    "chain": is_open and first in self._chains,
                    "called": any(path in self._called for path in box.paths),
                    "unused": not any(path in self._ran for path in box.paths),
                }
            )
            if is_open:
                todo += [(child, number, depth + 1) for child in reversed(children)]
        marks, of = _marks(events, place)
        return {"boxes": boxes, "marks": marks}, of

    def _below(self, path: str) -> Iterable[str]:
        """Yield all modules inside a module."""
        todo = list(self._inside[path])
        while todo:
            yield (each := todo.pop())
            todo += self._inside[each]


def _marks(
    events: Sequence[Event], place: Mapping[str, tuple[int, bool]]
) -> tuple[list[tuple[int, str, str]], list[int]]:
    """Return the marks, each by its box, the kind of its hook and the name of a parameter, and that of each event."""
    names: dict[int, set[str]] = {}
    for event in events:
        if isinstance(event.leaf, str):
            names.setdefault(place[event.path][0], set()).add(event.leaf)
    marks: dict[tuple[int, str, str], int] = {}
    of = []
    for event in events:
        box, inside = place[event.path]
        leaf = event.leaf if isinstance(event.leaf, str) and len(names[box]) <= _ROWS else ""
        key = (box, INSIDE, "") if inside else (box, event.kind, leaf)
        of.append(marks.setdefault(key, len(marks)))
    return list(marks), of


def _is_chain(module: nn.Module) -> bool:
    """Check whether the output of each module inside is the input of the next."""
    return isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward
