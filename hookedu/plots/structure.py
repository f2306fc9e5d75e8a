"""The structure of an autograd graph between named tensors: which flows into which, and where each is drawn."""

from collections.abc import Mapping
from typing import Any

import torch

from hookedu.hooks.tensors import described
from hookedu.language import Text
from hookedu.plots.flows import place

_COLUMNS, _ROWS = 8, 24  # as many as fit into 20 by 30 inches


def named_tensors_of(output: Any, name: str, tensors: Any) -> dict[str, torch.Tensor]:
    """Return the tensors by name, after a check that they and the output, which errors call `name`, can be drawn."""
    if not isinstance(output, torch.Tensor):
        raise TypeError(str(NO_OUTPUT.format(name=name, got=described(output))))
    if output.grad_fn is None:
        raise ValueError(str(NO_GRAPH.format(name=name)))
    if not isinstance(tensors, Mapping):
        raise TypeError(str(NO_NAMES.format(got=described(tensors))))
    for key, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(str(NO_TENSOR.format(key=repr(key), got=described(tensor))))
    return {str(key): tensor for key, tensor in tensors.items()}


def edges_behind(
    output: torch.Tensor, tensors: Mapping[str, torch.Tensor]
) -> tuple[list[tuple[str, str]], list[str]]:
    """Walk `grad_fn.next_functions` back from `output`; return arrows (source, target) and names found."""
    # By node and number of the result: an operation such as chunk has several.
    names = {place(tensor): name for name, tensor in tensors.items() if tensor.requires_grad}
    if place(output) not in names:
        raise ValueError(str(NOT_NAMED))
    edges, shown = [], [names[place(output)]]
    todo = [(place(output)[0], shown[0])]  # (node, named tensor that its result flows into)
    seen = set()
    while todo:
        node, target = todo.pop()
        for parent in node.next_functions:
            before, nr = parent
            if before is None or (parent, target) in seen:
                continue
            seen.add((parent, target))
            name = names.get((before, nr))
            if name and name not in shown:
                shown.append(name)
            if name:
                edges.append((name, target))
            todo.append((before, name or target))
    order = list(tensors)
    return sorted(set(edges), key=lambda e: (order.index(e[0]), order.index(e[1]))), sorted(
        shown, key=order.index
    )


def arrange(
    edges: list[tuple[str, str]], found: list[str], behind: Mapping[str, int]
) -> tuple[list[tuple[str, str]], dict[str, tuple[int, float]]]:
    """Place the tensors that fit: the column is the longest distance from a leaf, rows are centred in it.

    Return the arrows between them, too. `behind` is the longest distance to the output.
    """
    near = {name for name in found if behind[name] < _COLUMNS}
    depth = longest([edge for edge in edges if near.issuperset(edge)], found)
    columns: dict[int, list[str]] = {}
    for name in sorted(near, key=lambda name: (behind[name], found.index(name))):
        columns.setdefault(depth[name], []).append(name)
    columns = {x: columns[x][:_ROWS] for x in sorted(columns)}
    kept = {name for column in columns.values() for name in column}
    edges = [edge for edge in edges if kept.issuperset(edge)]
    tallest = max(map(len, columns.values()))
    places: dict[str, tuple[int, float]] = {}
    for (
        x,
        column,
    ) in columns.items():  # a tensor stands at the height of those it is made of: fewer arrows cross
        heights = {name: [places[source][1] for source, to in edges if to == name] for name in column}
        column.sort(key=lambda name: (sum(heights[name]) / max(1, len(heights[name])), found.index(name)))
        places |= {name: (x, y + (tallest - len(column)) / 2) for y, name in enumerate(column)}
    return edges, {name: places[name] for name in found if name in places}


def longest(edges: list[tuple[str, str]], names: list[str]) -> dict[str, int]:
    """Return the length of the longest path that leads to each name."""
    before: dict[str, list[str]] = {name: [] for name in names}
    for source, target in edges:
        before[target].append(source)
    length: dict[str, int] = {}
    for name in names:
        todo = [name]  # not by recursion, as a chain may be longer than Python's stack
        while todo:
            waiting = [source for source in before[todo[-1]] if source not in length]
            if waiting:
                todo += waiting
            else:
                last = todo.pop()
                length[last] = max((length[source] + 1 for source in before[last]), default=0)
    return length


NO_OUTPUT = Text(
    zh="{name} 应当是由需要梯度的张量算出来的张量，得到的是 {got}：不要用 `.item()`、`float()`、`.numpy()` 取出数来。",
    en="{name} should be a tensor that was computed from one that requires a gradient, got {got}: leave out `.item()`, "
    "`float()` and `.numpy()`.",
)
NO_GRAPH = Text(
    zh="{name} 没有 `grad_fn`：它不是由需要梯度的张量算出来的，反向传播无处可走。要由 `requires_grad=True` 的张量去算，"
    "不要放在 `torch.no_grad()` 里，也不要 `.detach()`。",
    en="{name} has no `grad_fn`: it was not computed from a tensor that requires a gradient, so backward has no way to go. "
    "Compute it from tensors with `requires_grad=True`, outside of `torch.no_grad()` and without `.detach()`.",
)
NO_NAMES = Text(
    zh='`tensors` 应当是名字到张量的字典，如 `{{"x": x, "w": w}}`，得到的是 {got}；模型的参数可以写 '
    "`dict(model.named_parameters())`。",
    en='`tensors` is a dict from names to tensors, such as `{{"x": x, "w": w}}`; got {got}. For the parameters of a model write '
    "`dict(model.named_parameters())`.",
)
NO_TENSOR = Text(
    zh="`tensors[{key}]` 应当是张量，得到的是 {got}；请去掉它，或者换成图里的张量。",
    en="`tensors[{key}]` should be a tensor, got {got}; leave it out, or give a tensor of the graph.",
)
NOT_NAMED = Text(
    zh='`output` 必须在 `tensors` 里：请加上一项，如 `"y": output`。',
    en='`output` must be among `tensors`: add it, for example as `"y": output`.',
)
