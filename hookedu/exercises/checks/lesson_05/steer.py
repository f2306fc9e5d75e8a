"""What decides about 05.4, `steer(module, direction, strength)`."""

from typing import Any

import torch

from hookedu.exercises.checks.common import HANDLE, handle_works
from hookedu.exercises.checks.forward_hooks import CALLS_NOW, WRONG_ARGUMENTS
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_05.steer import PROBE, Case, later_inputs
from hookedu.exercises.tools import same

_CALL = "steer(fc1, {case.direction}, {case.strength:g})"
_GIVEN = (
    "x = {case.x}; fc1.weight = {case.first}; fc2.weight = {case.second}; {key.double}fc1.{case.mode}(); "
    + _CALL
)
_TWO_HOOKS = _GIVEN + "; steer(fc1, {key.flipped}, {case.strength:g}); fc2(fc1(x))"

_RUNS = 5  # of the network while the hook is on


class _Key:
    """What fc1 makes of the input, the push, and what fc2 returns without it and with it."""

    def __init__(self, case: Case) -> None:
        self.case, self.made, self.push = case, case.x @ case.first.T, case.strength * case.direction
        self.plain, self.steered = self.fc2(self.made), self.fc2(self.made + self.push)
        self.inputs = later_inputs(case.x)
        self.later = [self.fc2(x @ case.first.T + self.push) for x in self.inputs]
        self.relu = case.x.relu() + self.push
        self.flipped = case.direction.flip(0)  # that of the second hook
        turned = self.made + case.strength * self.flipped
        self.second, self.both = self.fc2(turned), self.fc2(turned + self.push)
        self.other = "fc1.eval()" if case.mode == "train" else "fc1.train()"
        self.double = "net.double(); " if case.first.dtype == torch.float64 else ""
        zero = torch.zeros(2, dtype=case.first.dtype)
        self.kept = {"fc1.weight": case.first, "fc1.bias": zero, "fc2.weight": case.second, "fc2.bias": zero}

    def fc2(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the output of the second layer."""
        return hidden @ self.case.second.T


def _runs(saw: Any, key: Any) -> list[Any]:
    """Return for each run whether it was steered: True, False, or None for any other result."""
    return [True if same(out, key.steered) else False if same(out, key.plain) else None for out in saw.runs]


def _computes_again(saw: Any, key: Any) -> bool:
    return same(saw.output, key.made) and saw.forwards > _RUNS


def _in_modes(saw: Any, key: Any) -> list[bool]:
    """Return whether the runs in training mode were steered and those in evaluation mode, if all in each are alike."""
    *runs, last = _runs(saw, key)
    alike = runs == runs[:1] * len(runs) and None not in (runs[0], last)
    return ([runs[0], last] if key.case.mode == "train" else [last, runs[0]]) if alike else []


def _wrong(saw: Any, key: Any) -> int:
    """Return the place of the first run that was not steered."""
    return next(n for n, steered in enumerate(_runs(saw, key)) if not steered)


def _given(saw: Any, key: Any) -> str:
    """Return the calls as code, with a second one if the first was right, in the other mode if all before it were."""
    case, code = key.case, f"{key.double}fc1.{key.case.mode}(); "
    for name, value in (("fc2.weight", case.second), ("fc1.weight", case.first), ("x", case.x)):
        code = f"{name} = {show(value)}; {code}"
    code += f"steer(fc1, {show(case.direction)}, {case.strength:g}); fc2(fc1(x))"
    if all(_runs(saw, key)[:-1]):
        return code + f"; {key.other}; fc2(fc1(x))"
    return code + "; fc2(fc1(x))" * (_wrong(saw, key) > 0)


def _later(of: str) -> Any:
    """Return a line with the first later input whose output is wrong ("inputs"), or with that output."""

    def line(saw: Any, key: Any) -> str:
        n = next((n for n, out in enumerate(key.later) if not same(saw.later[n], out)), 0)
        if of == "inputs":
            return f"{_GIVEN.format(case=key.case, key=key)}; fc2(fc1(x)); fc2(fc1({show(key.inputs[n])}))"
        return show((saw if of == "saw" else key).later[n])

    return line


EXERCISE = Exercise(
    PROBE,
    key=_Key,
    given=_GIVEN,
    checks=[
        Check(
            "untouched", "weights", lambda key: key.kept, essential=True, mistakes={"changes_weights": True}
        ),
        Check(
            "steers",
            "steered",
            want=lambda key: key.steered,
            ok=lambda saw, key: all(_runs(saw, key)),
            points=2,
            essential=True,
            given=[
                Say("under_no_grad", when=lambda saw, key: _wrong(saw, key) == 2),
                _given,
            ],
            expected="{want}",
            got=lambda saw, key: show(saw.runs[_wrong(saw, key)]),
            mistakes={
                "steers_once": lambda saw, key: (
                    _wrong(saw, key) and _runs(saw, key) == [n < _wrong(saw, key) for n in range(_RUNS)]
                ),
                "only_with_grad": lambda saw, key: _runs(saw, key) == [True, True, False, True, True],
                "adds_up": Gives(lambda key: key.steered),
                "only_training": lambda saw, key: _in_modes(saw, key) == [True, False],
                "only_evaluation": lambda saw, key: _in_modes(saw, key) == [False, True],
                "only_positive": lambda saw, key: key.case.strength < 0 and same(saw.steered, key.plain),
                "only_batches": lambda saw, key: key.made.dim() != 2 and same(saw.steered, key.plain),
                "no_return": lambda saw, key: saw.hooks and same(saw.steered, key.plain),
                "fires_backward": lambda saw, key: saw.backward and same(saw.steered, key.plain),
                "removed_at_once": lambda saw, key: saw.handle == HANDLE and same(saw.steered, key.plain),
                "not_registered": Gives(lambda key: key.plain),
                "minds_zero": lambda saw, key: key.case.strength == 0,
                "replaces_output": Gives(
                    lambda key: key.fc2(key.push if key.push.dim() == 1 else key.push.expand_as(key.made)),
                    lambda key: key.fc2(key.push.expand_as(key.made)),
                ),
                "no_strength": Gives(lambda key: key.fc2(key.made + key.case.direction)),
                "ignores_sign": lambda saw, key: (
                    key.case.strength < 0 and same(saw.steered, key.fc2(key.made - key.push))
                ),
                "wrong_sign": Gives(lambda key: key.fc2(key.made - key.push)),
                "steers_input": Gives(lambda key: key.fc2((key.case.x + key.push) @ key.case.first.T)),
            },
        ),
        Check(
            "each_input",
            "later",
            want=lambda key: key.later,
            essential=True,
            given=_later("inputs"),
            expected=_later("key"),
            got=_later("saw"),
            mistakes={"remembers_output": lambda saw, key: any(same(out, key.steered) for out in saw.later)},
        ),
        Check(
            "others",
            "output",
            want=lambda key: key.made,
            ok=lambda saw, key: same(saw.output, key.made) and not _computes_again(saw, key),
            points=1,
            given=[Say("all_runs", when=_computes_again), Say("made")],
            expected=[Say("forwards", when=_computes_again, n=_RUNS), "output == {want}"],
            got=[
                Say("forwards", when=_computes_again, n=lambda saw, key: saw.forwards),
                "output == {value}",
            ],
            mistakes={"computes_again": _computes_again, "in_place": True},
        ),
        Check(
            "gradient",
            "x_grad",
            want=lambda key: torch.ones_like(key.made) @ key.case.second @ key.case.first,
            points=1,
            given=_GIVEN + "; fc2(fc1(x)).sum().backward()",
            label="x.grad",
            mistakes={"cuts_gradient": lambda saw, key: saw.x_grad is None or not saw.x_grad.any()},
        ),
        Check(
            "apart",
            "apart",
            want=lambda key: key.made,
            essential=True,
            label="another(x)",
            given=_GIVEN + "; another = type(fc1)(fc1.weight); another(x)",
            mistakes={"other_modules": Gives(lambda key: key.made + key.push)},
        ),
        Check(
            "without_parameters",
            "relu",
            want=lambda key: key.relu,
            essential=True,
            given="x = {case.x}; relu = nn.ReLU(); steer(relu, {case.direction}, {case.strength:g}); relu(x)",
            label="relu(x)",
        ),
        handle_works(_CALL, silent=lambda saw, key: same(saw.after, key.plain)),
        Check(
            "second_hook",
            # What loses the first hook together with those of others, or the output before it, is told so.
            ok=lambda saw, key: saw.lost or _computes_again(saw, key) or same(saw.both, key.both),
            essential=True,
            given=_TWO_HOOKS,
            expected="{key.both}",
            got="{saw.both}",
            mistakes={
                "cancels_earlier": lambda saw, key: (
                    same(saw.both, key.second) and not same(key.both, key.second)
                )
            },
        ),
    ],
    raises={"returns_tuple": r"must be Tensor, not (tuple|list)"} | CALLS_NOW | WRONG_ARGUMENTS,
)
