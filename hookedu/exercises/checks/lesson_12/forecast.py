"""What decides about 12.4, `forecast(build, shape)`."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks

from hookedu.exercises.criteria import Check, Of, Saw, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_12.forecast import DEFAULT, PROBE, Case

_CODE = {
    "stack": "Linear, ReLU, Dropout, Linear, ReLU(inplace=True), Dropout().eval(), Linear(bias=False), Tanh",
    "pictures": "Sequential(Conv2d, BatchNorm2d), MaxPool2d, Flatten, Linear",
    "attention": "q, k, v = Linear(x).chunk(3, -1); w = softmax(q @ k.mT, -1); return LayerNorm(w @ v), w",
    "scaled": "frozen_Linear(Linear(x.sin()) * buffer)[:, :2].sigmoid()",
    "shared": "h = 2 * (x @ p[0]); y = (h.relu() @ p[1].t()) * h[:, :1].detach() * p[0, 0].detach(); return y * y",
}


class Key:
    """What autograd saves, measured: the model is built on the CPU and run with real values."""

    def __init__(self, case: Case) -> None:
        self.case, self.saved = case, []
        model, self.x = case.build(), torch.rand(case.shape)
        parameters, buffers = [*model.parameters()], [*model.buffers()]
        self.parameters = {_place(tensor) for tensor in parameters}
        self.own = self.parameters | {_place(tensor) for tensor in buffers}
        self.sizes = {tuple(tensor.shape) for tensor in (*parameters, *buffers)}
        self.all_own = sum({_place(t): _whole(t) for t in (*parameters, *buffers)}.values())

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            self.saved.append(tensor.detach())
            return tensor.detach()

        with saved_tensors_hooks(pack, lambda packed: packed):
            self.output = model(self.x)  # kept, so that no two storages are at one address
        self.others = [tensor for tensor in self.saved if _place(tensor) not in self.own]
        self.want = _once(self.others)

    def without(self, left_out: Callable[[torch.Tensor], Any]) -> int:
        """Return the sum over storages of what is saved, without the tensors for which this holds."""
        return _once(tensor for tensor in self.saved if not left_out(tensor))


def _place(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _whole(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().nbytes()


def _once(tensors: Iterable[torch.Tensor]) -> int:
    """Return the bytes of the storages of these tensors, each counted once."""
    return sum({_place(tensor): _whole(tensor) for tensor in tensors}.values())


def _is(*values: Callable[[Key], int]) -> Of:
    """Return the condition that the forecast is one of these numbers, and not the right one."""
    return lambda saw, key: saw.number in [value(key) for value in values]


def _view_bytes(key: Key) -> list[int]:
    """Return the sums if of each storage only a view counts: the first, the last or the largest that was saved."""
    first = {_place(t): t.nbytes for t in reversed(key.others)}
    last = {_place(t): t.nbytes for t in key.others}
    largest = {_place(t): t.nbytes for t in sorted(key.others, key=lambda t: t.nbytes)}
    views = {(_place(t), t.storage_offset(), t.shape, t.stride()): t.nbytes for t in key.others}
    return [sum(sizes.values()) for sizes in (first, last, largest, views)]


def _by_address(key: Key) -> list[int]:
    """Return the sums by `data_ptr()`, which on the meta device is how far a view begins from 0; for some, 0 is the model's."""
    found = []
    for size in (_whole, lambda t: t.nbytes):
        sizes = {t.storage_offset() * t.element_size(): size(t) for t in key.saved}
        found += [sum(sizes.values()), sum(n for place, n in sizes.items() if place)]
    return found


def _some(key: Key) -> set[int]:
    """Return the bytes of each choice of some storages of the model that were saved."""
    sums = {0}
    for size in {_place(t): _whole(t) for t in key.saved if _place(t) in key.own}.values():
        sums |= {size + one for one in sums}
    return sums - {0}


def _right(saw: Saw, key: Key) -> bool:
    return type(saw.number) in (int, float) and saw.number == key.want


def _no_grad(saw: Saw, key: Key) -> bool:
    return bool(saw.ran) and not any(run["grad"] for run in saw.ran)


def _requires_grad(saw: Saw, key: Key) -> bool:
    return any(run["requires_grad"] for run in saw.ran)


def _mode(saw: Saw, key: Key) -> bool:
    return not all(run["modes"] for run in saw.ran)


def _input(saw: Saw, key: Key) -> bool:
    return any(run["input"] != ["float32", list(key.case.shape), 0] for run in saw.ran)


def _off_meta(devices: Iterable[list[str]]) -> bool:
    return any(device != ["meta"] for device in devices)


def _left(saw: Saw) -> list[Any]:
    """Return the first state that is not as it was."""
    return next(state for state in (saw.after, *saw.raised) if state != _KEPT)


_KEPT = [DEFAULT, False]  # the default device of before, and no hooks


EXERCISE = Exercise(
    PROBE,
    key=Key,
    given=Say("model", code=lambda saw, key: _CODE[key.case.kind], shape=lambda saw, key: key.case.shape),
    checks=[
        Check(
            "number",
            "number",
            want=lambda key: key.want,
            ok=_right,
            points=3,
            essential=True,
            mistakes={
                "no_return": lambda saw, key: saw.number is None,
                "never_runs": lambda saw, key: not saw.ran,
                "no_grad": _no_grad,
                "other_mode": _mode,
                "other_input": _input,
                "input_grad": _requires_grad,
                "addresses": lambda saw, key: saw.number in _by_address(key),
                "nothing": _is(lambda key: 0),
                "all_of_them": _is(
                    lambda key: sum(t.nbytes for t in key.saved), lambda key: sum(map(_whole, key.saved))
                ),
                "each_time": _is(
                    lambda key: sum(t.nbytes for t in key.others), lambda key: sum(map(_whole, key.others))
                ),
                "own": _is(lambda key: _once(key.saved)),
                "not_in_state_dict": lambda saw, key: (
                    key.case.kind == "scaled"
                    and saw.number == key.without(lambda t: _place(t) in key.parameters)
                ),
                "buffers": _is(lambda key: key.without(lambda t: _place(t) in key.parameters)),
                "by_shape": _is(
                    lambda key: key.without(lambda t: tuple(t.shape) in key.sizes),
                    lambda key: key.without(lambda t: tuple(t.shape) in key.sizes or _place(t) in key.own),
                ),
                "subtracts": _is(
                    lambda key: _once(key.saved) - key.all_own, lambda key: key.want - key.all_own
                ),
                "view_bytes": lambda saw, key: saw.number in _view_bytes(key),
                "own_left": lambda saw, key: saw.number - key.want in _some(key),
                "input_left_out": _is(
                    lambda key: key.want - (_whole(key.x) if _place(key.x) in map(_place, key.others) else 0)
                ),
                "floats_only": _is(lambda key: _once(t for t in key.others if t.is_floating_point())),
                "elements": _is(
                    lambda key: sum({_place(t): _whole(t) // t.element_size() for t in key.others}.values())
                ),
            },
        ),
        Check(
            "meta",
            ok=lambda saw, key: not _off_meta(saw.built) and not _off_meta(run["devices"] for run in saw.ran),
            points=2,
            essential=True,
            expected=Say("devices", built="meta", ran="meta"),
            got=Say(
                "devices",
                built=lambda saw, key: ", ".join(device for one in saw.built for device in one),
                ran=lambda saw, key: ", ".join(device for run in saw.ran for device in run["devices"]),
            ),
            mistakes={"built_elsewhere": lambda saw, key: _off_meta(saw.built), "ran_elsewhere": True},
        ),
        Check(
            "once",
            ok=lambda saw, key: (len(saw.built), len(saw.ran)) == (1, 1),
            points=1,
            expected=Say("times", built=1, ran=1),
            got=Say("times", built=lambda saw, key: len(saw.built), ran=lambda saw, key: len(saw.ran)),
            mistakes={
                "builds_again": lambda saw, key: len(saw.built) > 1,
                "runs_again": lambda saw, key: len(saw.ran) > 1,
            },
        ),
        Check(
            "mode",
            ok=lambda saw, key: not _mode(saw, key),
            points=1,
            expected=Say("modes"),
            got=Say("modes_changed"),
            mistakes={"changes_mode": True},
        ),
        Check(
            "let_go",
            ok=lambda saw, key: not saw.alive,
            points=1,
            expected=Say("let_go"),
            got=Say("stays"),
            mistakes={"holds_graph": True},
        ),
        Check(
            "restored",
            ok=lambda saw, key: [saw.after, *saw.raised] == [_KEPT] * 3,
            points=1,
            given=[
                Say("raised", when=lambda saw, key: saw.after == _KEPT),
                Say("lasting", when=lambda saw, key: key.case.lasting, device=DEFAULT),
                f'with torch.device("{DEFAULT}"): forecast(build, {{case.shape}})',
            ],
            expected=Say("state", device=DEFAULT, hooks=False),
            got=[
                Say("swallowed", when=lambda saw, key: saw.after == _KEPT and "swallowed" in saw.raised),
                Say("state", device=lambda saw, key: _left(saw)[0], hooks=lambda saw, key: _left(saw)[1]),
            ],
            mistakes={
                "default_device": lambda saw, key: saw.after[0] != DEFAULT,
                "hooks_on": lambda saw, key: saw.after[1],
                "swallows_it": lambda saw, key: "swallowed" in saw.raised,
                "not_in_finally": True,
            },
        ),
    ],
    raises={
        "other_device": r"[Ee]xpected all tensors to be on the same device|^(?!.*no data).*(?:device type|meta.*cpu|cpu.*meta)",
        "no_values": r"item\(\)|meta tensors?|no data",
        "output_tuple": r"'tuple' object has no attribute",
        "arguments": r"missing \d+ required positional argument|takes \d+ positional arguments? but \d+ (was|were) given",
    },
)
