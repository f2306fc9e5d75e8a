"""What decides about 05.2, `prove(model, x, skip)`."""

from collections.abc import Callable
from typing import Any

import torch

from hookedu.exercises.checks.forward_hooks import CALLS_NOW, WRONG_ARGUMENTS
from hookedu.exercises.criteria import Check, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_05.prove import PROBE, Case

_NESTED = "self.fc1 = nn.Sequential(nn.Linear({key.width}, {key.width}), {key.act}()); "
_GIVEN = "x = {case.x}; {key.double}result = prove(model, x, nn.{case.skip.__name__})"
_RAISES = {
    "too_many": r"zip\(\) argument \d is (shorter|longer)",
    "output_and_list": r"for -: 'Tensor' and 'list'",
}


class _Key:
    """Names in the order of calls, without the skipped module, and the differences in the network that lies."""

    def __init__(self, case: Case) -> None:
        first, second = case.weights
        self.width = case.x.shape[-1]
        self.skip, self.honest = case.skip.__name__, [case.x @ first.T]
        if case.reuses:
            self.honest.append(case.act()(self.honest[-1]))
        self.honest.append(case.skip()(self.honest[-1]) @ second.T)
        self.honest.append(case.act()(self.honest[-1]))
        self.act = case.act.__name__
        self.names = (
            ["Linear", self.act, "Linear", self.act] if case.reuses else ["Linear", "Linear", self.act]
        )
        # In one network the first child is a Sequential.
        self.nested = ["Sequential", *self.names[1:]]
        self.lies, self.reuses, self.tiny = case.lies, case.reuses, case.x.dtype == torch.float64
        self.double = "model.double(); x = x.double(); " if self.tiny else ""
        self.largest = [lie.abs().max().item() for lie in case.lies]

    def of(self, measure: Callable[[torch.Tensor], torch.Tensor]) -> list[float]:
        """Return what a measure makes of each lie."""
        return [measure(lie).item() for lie in self.lies]

    def between(self, measure: Callable[[torch.Tensor], torch.Tensor]) -> list[float]:
        """Return by how much a measure of outputs and the same of reports differ."""
        pairs = zip(self.honest, self.lies, strict=True)
        return [(measure(own + lie) - measure(own)).abs().item() for own, lie in pairs]


# Other measures of a difference, without the sign and with it.
_NOT_THE_LARGEST = (
    *(lambda d: d.abs().mean(), lambda d: d.abs().sum(), lambda d: d.norm(), lambda d: d.square().mean()),
    *(lambda d: d.square().sum(), lambda d: d.square().max(), lambda d: d.abs().min()),
)
_SIGNED = (
    *(
        lambda d: d.max(),
        lambda d: (-d).max(),
        lambda d: d.min(),
        lambda d: (-d).min(),
        lambda d: d.max().abs(),
    ),
    *(lambda d: d.min().abs(), lambda d: d.sum(), lambda d: -d.sum(), lambda d: d.sum().abs()),
    *(lambda d: d.mean(), lambda d: -d.mean(), lambda d: d.mean().abs()),
)
_MAXIMA = (lambda t: t.max(), lambda t: t.abs().max())
_SOME_ELEMENTS = (
    *(lambda d: d.flatten()[0].abs(), lambda d: d.flatten()[-1].abs()),
    *(lambda d: d[0].abs().max(), lambda d: d[-1].abs().max(), lambda d: d[:2].abs().max()),
    *(lambda d: d[:3].abs().max(), lambda d: d[..., :2].abs().max()),
)


def _names(pairs: Any) -> list[Any]:
    """Return the first item of each pair."""
    return [pair[0] for pair in pairs[:]]  # of a list only, not of a dict


def _numbers(pairs: Any) -> list[Any]:
    """Return the second item of each pair; a tensor of one element counts as a number."""
    return [n.item() if isinstance(n, torch.Tensor) and n.numel() == 1 else n for _, n in pairs]


def _equal(pairs: Any, numbers: list[float]) -> bool:
    """Check whether the second items are these numbers, up to rounding."""
    return all(
        n == number or (n != n and number != number) or abs(n - number) < 1e-5 * abs(number)
        for n, number in zip(_numbers(pairs), numbers, strict=True)
    )


def _hides_nan(saw: Any, key: Any) -> bool:
    """Whether the answer is right but for an ordinary number in place of nan."""
    pairs = zip(_numbers(saw.lying), key.largest, strict=True)
    given = [number if number != number and abs(n) < float("inf") else n for n, number in pairs]
    return _equal([[name, n] for name, n in zip(key.names, given, strict=True)], key.largest)


def _one_of(*measures: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    return lambda saw, key: any(_equal(saw.lying, key.of(measure)) for measure in measures)


def _runs_again(saw: Any, key: Any) -> bool:
    return max(saw.calls) > 1


def _result(
    id: str, of: str, names: Any, numbers: Any = lambda key: [0.0] * len(key.names), **row: Any
) -> Check:
    """Require something of the result for one of the networks, which the message shows."""
    want = lambda key: [*zip(names(key), numbers(key), strict=True)]  # noqa: E731
    return Check(
        id,
        of,
        want,
        essential=True,
        label="result",
        **row,
    )


def _suits(case: Case) -> bool:
    """Check whether mistakes differ: the largest values compared, and some elements unless there are only two."""
    key = _Key(case)
    # As text, because nan is not equal to itself.
    signed = [str(key.of(measure)) for measure in (*_SIGNED, *_NOT_THE_LARGEST)]
    some = [numbers for m in _SOME_ELEMENTS if (numbers := str(key.of(m))) != str(key.largest)]
    if case.x.numel() > 2 and any(numbers in signed for numbers in some):
        return False
    compared = [key.between(measure) for measure in _MAXIMA]
    if case.x.dim() == 2 and any(
        all(abs(n - lie) < 1e-4 for n, lie in zip(ns, key.largest, strict=True)) for ns in compared
    ):
        return False
    return not any(str(numbers) in signed + some for numbers in compared)


EXERCISE = Exercise(
    PROBE,
    key=_Key,
    suits=_suits,
    given=_GIVEN,
    checks=[
        _result(
            "names",
            "honest",
            lambda key: key.names,
            ok=lambda saw, key: _names(saw.honest) == key.names,
            points=1,
            mistakes={
                "returns_nothing": lambda saw, key: saw.honest is None,
                "not_a_list": lambda saw, key: not isinstance(saw.honest, list),
                "no_entries": lambda saw, key: saw.honest == [],
                "not_only_children": lambda saw, key: "Net" in _names(saw.honest),
                "ignores_skip": lambda saw, key: key.skip in _names(saw.honest),
                "late_binding": lambda saw, key: _names(saw.honest) == ["Linear"] * len(key.names),
                "not_a_name": lambda saw, key: not {*_names(saw.honest)} & {*key.names},
                "order_of_children": lambda saw, key: _names(saw.honest) == [key.act, "Linear", "Linear"],
                # Each class is there, so its hooks fired.
                "calls_missing": lambda saw, key: (
                    len(_names(saw.honest)) < len(key.names) and {*_names(saw.honest)} == {*key.names}
                ),
            },
        ),
        _result(
            "differences",
            "lying",
            lambda key: key.names,
            lambda key: key.largest,
            ok=lambda saw, key: _equal(saw.honest, [0.0] * len(key.names)) and _equal(saw.lying, key.largest),
            points=1,
            given=Say("misreports"),
            mistakes={
                "not_a_number": lambda saw, key: not {*map(type, _numbers(saw.lying))} <= {int, float},
                "too_coarse": lambda saw, key: (
                    key.tiny
                    and any(n == 0 < lie for n, lie in zip(_numbers(saw.lying), key.largest, strict=True))
                ),
                "always_zero": lambda saw, key: (
                    not any(n and n == n for n in _numbers(saw.lying))
                ),  # inf - inf is nan
                "hides_nan": _hides_nan,
                "some_elements": _one_of(*_SOME_ELEMENTS),
                "signed": _one_of(*_SIGNED),
                "not_the_largest": _one_of(*_NOT_THE_LARGEST),
                "of_maxima": lambda saw, key: any(_equal(saw.lying, key.between(m)) for m in _MAXIMA),
            },
        ),
        _result(
            "children",
            "nested",
            lambda key: key.nested,
            ok=lambda saw, key: _names(saw.nested) == key.nested,
            given=_NESTED + _GIVEN,
            mistakes={"not_only_children": lambda saw, key: _names(saw.nested)[:2] == ["Linear", key.act]},
        ),
        _result(
            "without_graph",
            "no_grad",
            lambda key: key.names,
            ok=lambda saw, key: (
                _names(saw.no_grad) == key.names and _equal(saw.no_grad, [0.0] * len(key.names))
            ),
            given=Say("under_no_grad"),
            mistakes={"only_with_grad": lambda saw, key: saw.no_grad == []},
        ),
        Check(
            "a_list",
            ok=lambda saw, key: saw.is_list,
            essential=True,
            expected="type(result) == list",
            got="type(result) == {saw.kind}",
            mistakes={"not_a_list": True},
        ),
        Check(
            "once",
            "calls",
            ok=lambda saw, key: max(saw.calls) == 1 and set(saw.root_calls) == {1},
            points=1,
            expected=[Say("runs", when=_runs_again, n=1), Say("fires", n=1)],
            got=[
                Say("runs", when=_runs_again, n=lambda saw, key: max(saw.calls)),
                Say("fires", n=lambda saw, key: min(saw.root_calls)),
            ],
            mistakes={"runs_twice": _runs_again, "forward_directly": True},
        ),
        Check(
            "clean",
            ok=lambda saw, key: not (saw.left or saw.overwritten or saw.cut or saw.detached),
            points=1,
            expected=[
                Say("hooks_left", when=lambda saw, key: saw.left, value=0),
                Say("kept", when=lambda saw, key: saw.overwritten),
                "output.requires_grad == True",
            ],
            got=[
                Say("hooks_left", when=lambda saw, key: saw.left, value=lambda saw, key: saw.left),
                Say("not_kept", when=lambda saw, key: saw.overwritten),
                "output.requires_grad == False",
            ],
            mistakes={
                "leaves_hooks": lambda saw, key: saw.left,
                "overwrites": lambda saw, key: saw.overwritten,
                "cuts_gradient": lambda saw, key: saw.cut,
                "detaches_in_place": lambda saw, key: saw.detached,
            },
        ),
    ],
    raises=_RAISES | CALLS_NOW | WRONG_ARGUMENTS,
)
