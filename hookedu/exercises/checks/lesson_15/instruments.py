"""What decides about 15.1, `instruments(model)`."""

from collections.abc import Callable
from typing import Any

import torch

from hookedu.exercises.checks.chain import RAISES, outputs_close
from hookedu.exercises.checks.lesson_15.shared import (
    as_lists,
    close_to,
    ends,
    holds,
    is_manager,
    numbers,
    shown,
)
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque
from hookedu.exercises.probes.lesson_15.instruments import (
    PROBE,
    SMALL,
    Case,
    loss_of,
    make_model,
    make_unusual,
)
from hookedu.exercises.tools import all_close, gradients

Measure = Callable[[torch.Tensor], torch.Tensor]
_MEASURES: dict[str, Measure] = {
    "norm": torch.Tensor.norm,
    "mean_abs": lambda t: t.abs().mean(),
    "mean": torch.Tensor.mean,
    "sum": torch.Tensor.sum,
    "sum_abs": lambda t: t.abs().sum(),
    "largest": lambda t: t.abs().max(),
    "square": lambda t: t.square().sum(),
    "rms": lambda t: t.square().mean().sqrt(),
    "std": torch.Tensor.std,
}


class _Key:
    """The rows that are wanted, and those that likely mistakes give, from runs without any hook."""

    def __init__(self, case: Case) -> None:
        self.case, self.run = case, case.names.run
        self.model, x = make_model(case), case.x
        model = self.model
        self.out = model(x.clone()).detach()
        loss_of(model(x.clone())).backward()
        self.grads = gradients(model)
        self.rows, self.wrong = self._rows(_MEASURES["norm"]), {}
        for name, measure in _MEASURES.items():
            self.wrong[name] = self._rows(measure)
        self.first, self.forward = self.rows[:1], [[[name, [pair[0], None]] for name, pair in self.rows[0]]]
        self.inputs = self._rows(_MEASURES["norm"], of_input=True)
        self.unusual = _unusual(case)

    def _rows(self, measure: Measure, of_input: bool = False) -> list[Any]:
        """Return the rows of the runs in the block: a step, one without gradients, a step of two, gradients of 0, none."""
        x, other = self.case.x, self.case.other_x
        runs = [(x, 1.0), (other, None), (x, 1.0), (other, 3.0), (2 * x, 0.0), (x, None)]
        return [self._row(x, times, measure, of_input, n != 1) for n, (x, times) in enumerate(runs)]

    def _row(
        self, x: torch.Tensor, times: float | None, measure: Measure, of_input: bool, training: bool
    ) -> list[Any]:
        """Return the row of one run. Nothing works in place here: every output keeps its values and its gradient."""
        case, names = self.case, self.case.names

        def layer(name: str, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.linear(x, self.model.get_parameter(f"{name}.weight"))

        stem = layer(names.stem, x)
        act = stem.relu()
        side, inner = layer(names.side, act), layer(f"{names.body}.{names.inner}", act)
        gate = inner.relu()
        branch = torch.zeros(()) if not training else side.detach() if case.cut else side
        head = layer(names.head, gate + branch)
        outputs = [stem, act, side, inner, gate, head]
        # What enters the ReLU has been overwritten by it when a forward hook sees it.
        inputs = [x, act, act, act, inner, gate + branch]
        arriving = [None] * 6
        if times is not None:
            wanted = [output for output in outputs if output.requires_grad]
            found = torch.autograd.grad(times * loss_of(head), wanted, allow_unused=True)
            by_place = dict(zip(map(id, wanted), found, strict=True))
            arriving = [by_place.get(id(output)) for output in outputs]
        return [
            [name, [measure(value.detach()).item(), None if grad is None else measure(grad).item()]]
            for name, value, grad in zip(self.run, inputs if of_input else outputs, arriving, strict=True)
            if training or name != names.side
        ]


def _unusual(case: Case) -> list[Any]:
    """Return the row of a step of the unusual model, in which nothing works in place."""
    model, x = make_unusual(case)
    outputs: dict[str, torch.Tensor] = {}
    for name, module in model.named_modules():
        if not list(module.children()):
            module.register_forward_hook(lambda m, args, output, name=name: outputs.update({name: output}))
    loss = SMALL * loss_of(model(x))
    grads = torch.autograd.grad(loss, [*outputs.values()])
    norms = zip(outputs.items(), grads, strict=True)
    return [[[name, [output.detach().norm().item(), grad.norm().item()]] for (name, output), grad in norms]]


def _firsts(rows: Any) -> Any:
    """Return the activations of rows, by name."""
    return [[[name, pair[0]] for name, pair in row] for row in rows]


def _names(rows: Any) -> Any:
    return [[name for name, _ in row] for row in rows]


def _other_names(saw: Any, key: _Key) -> bool:
    return _names(saw.rows) != _names(key.rows)


def _gradients_of(saw: Any) -> list[list[Any]]:
    return [[pair[1] for _, pair in row] for row in saw.rows]


def _first_number(saw: Any) -> Any:
    """Return the activation of the first layer, of whatever kind."""
    return saw.first[0][0][1][0]


_NANS = "[[nan, nan]]"
_GIVEN = "with instruments(model) as rows: loss_of(model(x)).backward()"

EXERCISE = Exercise(
    PROBE,
    key=_Key,
    given=_GIVEN,
    checks=[
        is_manager("with instruments(model) as rows:"),
        Check(
            "unchanged",
            "out",
            want=lambda key: key.out,
            ok=lambda saw, key: outputs_close(saw.out, key.out) and all_close(saw.grads, key.grads),
            essential=True,
            expected=Say("as_without"),
            got=[
                Say("out_differs", when=lambda saw, key: not outputs_close(saw.out, key.out)),
                Say("grad_differs"),
            ],
            mistakes={
                "changes_output": lambda saw, key: not outputs_close(saw.out, key.out),
                "changes_gradient": True,
            },
        ),
        Check(
            "first",
            "first",
            want=lambda key: key.first,
            equal=close_to,
            points=2,
            essential=True,
            given=Say("in_order", code=_GIVEN, run=lambda saw, key: ", ".join(key.run)),
            expected=lambda saw, key: f"rows == {shown(key.first)}",
            got=lambda saw, key: f"rows == {shown(saw.first)}",
            mistakes={
                "not_on_inside": lambda saw, key: saw.on == 0 and saw.first == [],
                "keeps_tensors": lambda saw, key: (
                    holds(saw.first, torch.Tensor) and close_to(numbers(saw.first), key.first)
                ),
                "not_python": lambda saw, key: holds(saw.first, Opaque),
                "at_exit": lambda saw, key: saw.first == [] and saw.rows == [] and saw.late > 0,
                "no_rows": Gives(lambda key: []),
                "whole_tensors": lambda saw, key: _first_number(saw).numel() > 1,
                "row_per_layer": lambda saw, key: [row[0][0] for row in saw.first] == key.run,
                "late_binding": lambda saw, key: len(saw.first) == 1 and len(saw.first[0]) == 1,
                "counts_containers": lambda saw, key: (
                    {name for row in saw.first for name, _ in row} & {"", key.case.names.body}
                ),
                "counts_unused": lambda saw, key: key.case.names.spare in _names(saw.first)[0],
                "model_order": lambda saw, key: (
                    _names(saw.first) != [key.run] and sorted(_names(saw.first)[0]) == sorted(key.run)
                ),
                "of_the_input": lambda saw, key: close_to(_firsts(saw.first), _firsts(key.inputs[:1])),
                "too_late": lambda saw, key: close_to(
                    [numbers(saw.first[0][n][1][0]) for n in (0, 1)], [key.first[0][1][1][0]] * 2
                ),
                "other_measure": lambda saw, key: any(
                    close_to(_firsts(numbers(saw.first)), _firsts(wrong[:1]))
                    for name, wrong in key.wrong.items()
                    if name != "norm"
                ),
                "zero_for_none": lambda saw, key: close_to(
                    saw.first, [[[n, [a, g or 0.0]] for n, (a, g) in row] for row in key.first]
                ),
                "no_gradients": lambda saw, key: close_to(saw.first, key.forward),
                "other_gradient": lambda saw, key: close_to(_firsts(saw.first), _firsts(key.first)),
            },
        ),
        Check(
            "forward",
            "forward",
            want=lambda key: key.forward,
            equal=close_to,
            essential=True,
            given=Say("before_backward"),
            expected=lambda saw, key: f"rows == {shown(key.forward)}",
            got=lambda saw, key: f"rows == {shown(saw.forward)}",
            mistakes={"not_at_once": lambda saw, key: saw.forward == []},
        ),
        Check(
            "rows",
            "rows",
            want=lambda key: key.rows,
            equal=close_to,
            points=2,
            essential=True,
            given=Say("six_runs"),
            expected=lambda saw, key: _some(key.rows, saw.rows, key.rows),
            got=lambda saw, key: _some(saw.rows, saw.rows, key.rows),
            mistakes={
                "every_model": lambda saw, key: len(saw.other) > 1,
                "one_row": lambda saw, key: len(saw.rows) == 1,
                "skips_no_grad": lambda saw, key: len(saw.rows) == 5,
                "other_rows": lambda saw, key: len(saw.rows) != 6 or _other_names(saw, key),
                "latest_row": lambda saw, key: (
                    _gradients_of(saw)[2] == [None] * 6 or _gradients_of(saw)[5] != [None] * 6
                ),
                "none_for_zero": lambda saw, key: _gradients_of(saw)[4] == [None] * 6,
                "zero_for_none": lambda saw, key: 0.0 in _gradients_of(saw)[1],
            },
        ),
        Check(
            "branches",
            "branches",
            want=lambda key: [["left"], ["right"]],
            essential=True,
            given=Say("two_branches"),
            label="[[*row] for row in rows]",
            mistakes={"other_rows": True},
        ),
        Check(
            "resumed",
            "resumed",
            want=lambda key: [["left"]],
            essential=True,
            given=Say("call_raised"),
            label="[[*row] for row in rows][-1:]",
            mistakes={"stays_raised": True},
        ),
        Check(
            "at_once",
            "at_once",
            want=lambda key: [["right", True]],
            essential=True,
            given=Say("in_the_middle"),
            expected=Say("norm_there"),
            got=Say("norm_missing"),
            mistakes={"only_at_the_end": True},
        ),
        Check(
            "spoilt",
            ok=lambda saw, key: as_lists(saw.spoilt["reading"]) == _NANS and saw.spoilt["grad"] == "nan",
            essential=True,
            given="model = Sequential(Linear(3, 1)); x[0, 0] = nan; (model(x) * nan).sum().backward()",
            expected=f"list(rows[-1].values()) == {_NANS}, weight.grad == nan",
            got=lambda saw, key: (
                f"list(rows[-1].values()) == {saw.spoilt['reading']}, weight.grad == {saw.spoilt['grad']}"
            ),
            mistakes={
                "changes_gradient": lambda saw, key: saw.spoilt["grad"] != "nan",
                "hides_nan": True,
            },
        ),
        Check(
            "unusual",
            "unusual",
            want=lambda key: key.unusual,
            equal=close_to,
            essential=True,
            given=Say("many_types"),
            expected=lambda saw, key: f"rows == {shown(key.unusual)}",
            got=lambda saw, key: f"rows == {shown(saw.unusual)}",
            mistakes={
                "containers_too": lambda saw, key: {name for name, _ in saw.unusual[0]} & {"", "1"},
                "some_types": lambda saw, key: (
                    {name for name, _ in saw.unusual[0]} < {name for name, _ in key.unusual[0]}
                ),
            },
        ),
        *ends(
            _GIVEN,
            lambda saw, key: saw.late == 6,
            lost={"removes_others": lambda saw, key: saw.left < 0},
        ),
    ],
    raises={
        "full_backward": r"is a view and is being modified inplace|BackwardHookFunction",
        "no_gradient_to_hook": r"cannot register a hook on a tensor that doesn't require gradient",
        "no_manager_error": r"generator didn't yield|NoneType' object is not an iterator|__exit__|__enter__",
    }
    | RAISES,
)


def _some(rows: Any, saw: Any, want: Any) -> str:
    """Write the first row that differs, with its number; or how many there are."""
    if not isinstance(saw, list) or len(saw) != len(want):
        return f"len(rows) == {len(rows)}" if isinstance(rows, list) else shown(rows)
    n = next((n for n, (one, two) in enumerate(zip(saw, want, strict=True)) if not close_to(one, two)), 0)
    return f"rows[{n}] == {shown(rows[n])}"
