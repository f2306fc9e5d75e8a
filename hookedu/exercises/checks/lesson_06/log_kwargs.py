"""What decides about 06.3, `log_kwargs(layer, log)`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from hookedu.exercises.checks.common import CALLS_NOW, handle_works
from hookedu.exercises.criteria import Check, Gives, Of, Saw, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque, show
from hookedu.exercises.probes.lesson_06.log_kwargs import FAILING, PROBE, Case, keywords, kinds, positional
from hookedu.exercises.structures import mapped
from hookedu.exercises.tools import same

_KEYS = {"mask", "bias", "scale"}


def _want(case: Case) -> list[Any]:
    """Return the log with every value as [name of its kind, value], as the probe observes it."""
    return [
        kinds(entry) for entry in [*case.log, *({k: _plain(v) for k, v in c.items()} for c in keywords(case))]
    ]


def _without_failed(case: Case) -> list[Any] | None:
    """Return the log without the call whose forward raises; None if there is no such call."""
    log, failed = _want(case), len(case.log) + FAILING
    return log[:failed] + log[failed + 1 :] if case.setting == "fails" else None


def _plain(value: Any) -> Any:
    return tuple(value.shape) if isinstance(value, torch.Tensor) else value


def _log(log: list[Any], case: Case) -> str:
    """Return what the log should be, or is, as code; of a long one the length and the end."""
    if len(case.log) > 1:
        return f"(len(log), log[-5:]) == ({len(log)}, {_show(log[-5:])})"
    return f"log == {_show(log)}"


def _show(log: list[Any]) -> str:
    """Return the entries of a log as code, with tensors named as such."""
    entries = [
        {k: _SHOWN.get(kind, lambda v: v)(v) for k, (kind, v) in entry.items()}
        if isinstance(entry, dict)
        else entry
        for entry in log
    ]
    return show(mapped(_named, entries))


def _array(value: Any) -> Opaque:
    return Opaque(f"array: {show(value)}")


# How values of these kinds are shown.
_SHOWN: dict[str, Callable[[Any], Any]] = {"ndarray": _array, "dtype": Opaque}


def _named(value: Any) -> Any:
    return Opaque("Tensor") if isinstance(value, torch.Tensor) else value


def _new(saw: Saw, case: Case) -> list[Any]:
    """Return what was added to the log."""
    return saw.log[len(case.log) :]


def _more(kind: str) -> Of:
    """Return the condition that more values of this kind were logged than should be."""

    def count(log: list[Any]) -> int:
        return sum(k == kind for entry in log for k, _ in entry.values())

    return lambda saw, case: count(saw.log) > count(_want(case))


def _without(*lost: Callable[[Any], bool]) -> Of:
    """Return the condition that just the values are missing of which one of these functions tells."""

    def names(call: dict[str, Any], is_lost: Callable[[Any], bool]) -> set[str]:
        return {name for name, value in call.items() if not is_lost(value)}

    def fits(saw: Saw, case: Case) -> bool:
        found, calls = [set(entry) for entry in _new(saw, case)], keywords(case)
        left = [[names(call, is_lost) for call in calls] for is_lost in lost]
        return found != list(map(set, calls)) and found in left

    return fits


def _empty(value: Any) -> bool:
    return type(value) in (type(None), int, str, list) and not value


def _calls(case: Case) -> str:
    """Return the calls as code."""
    many = f"log == [{{'mask': n}} for n in range({len(case.log)})]; "
    log = many if len(case.log) > 1 else f"log == {case.log}; " if case.log else ""
    mode = {"eval": "layer.eval(); ", "no_grad": "with torch.no_grad(): "}.get(case.setting, "")
    second = f"layer({', '.join('x' for _ in positional(case))})"
    zeros = f"torch.zeros({case.shape}, dtype={case.dtype})"
    computed = f"2 * nn.Parameter({zeros})" if case.dtype == torch.float32 else zeros
    mask = f"mask={computed}, " * ("mask" in keywords(case)[0])
    return (
        f"{log}{mode}layer(x, {mask}bias={case.bias!r}, scale={case.first!r}); {second}; "
        f"for _ in range(2): layer(x, mask=..., bias=nn.Parameter(...), scale={case.last!r})"
    )


EXERCISE = Exercise(
    PROBE,
    given=[
        Say("fails", when=lambda saw, case: case.setting == "fails", calls=lambda saw, case: _calls(case)),
        Say("takes", when=lambda saw, case: case.setting == "no_grad", calls=lambda saw, case: _calls(case)),
        lambda saw, case: _calls(case),
    ],
    checks=[
        Check(
            "positional",
            "inputs",
            ok=lambda saw, case: saw.same_input,
            essential=True,
            expected=Say("own_x"),
            got="{saw.inputs}",
            mistakes={
                "replaces_args": Gives(lambda case: [case.x] * len(keywords(case))),
                "unpacks_args": True,
            },
        ),
        Check(
            "unchanged",
            ok=lambda saw, case: (
                saw.same_output
                and saw.same_keywords
                # What logs something else is told that.
                and ((saw.two and saw.none) or not same(saw.log, _want(case)))
            ),
            essential=True,
            given=[
                Say("more_or_none", when=lambda saw, case: saw.same_output and saw.same_keywords),
                lambda saw, case: _calls(case),
            ],
            expected=Say("same_keywords"),
            got=[
                Say("other_args", when=lambda saw, case: saw.same_output and saw.same_keywords),
                Say("other_output", when=lambda saw, case: not saw.same_output),
                lambda saw, case: _show(saw.received),
            ],
            mistakes={
                "changes_kwargs": lambda saw, case: (
                    not same(saw.received, [kinds(call) for call in keywords(case)])
                )
            },
        ),
        Check(
            "logs",
            "log",
            want=_want,
            points=3,
            essential=True,
            expected=lambda saw, case: _log(_want(case), case),
            got=lambda saw, case: _log(saw.log, case),
            mistakes={
                "fires_backward": lambda saw, case: saw.hooks == 0 and saw.backward,
                "not_registered": lambda saw, case: saw.hooks == 0 and not _new(saw, case),
                "removes_itself": lambda saw, case: saw.hooks_later < saw.hooks,
                "replaces_log": lambda saw, case: (
                    (len(saw.log) == 1 and not case.log)
                    or not same(saw.log[: len(case.log)], _want(case)[: len(case.log)])
                ),
                "rebinds_log": lambda saw, case: not _new(saw, case) and not saw.more,
                "only_after": lambda saw, case: saw.after and same(saw.log, _without_failed(case)),
                "skips_empty": lambda saw, case: len(_new(saw, case)) == 3 and all(_new(saw, case)),
                "skips_equal": lambda saw, case: len(_new(saw, case)) == 3,
                "reuses_dict": lambda saw, case: saw.one_entry and len(_new(saw, case)) == 4 and saw.log[-1],
                "without_flag": lambda saw, case: not saw.flag and not any(_new(saw, case)),
                "names_only": lambda saw, case: _new(saw, case)[0] == list(keywords(case)[0]),
                "no_dict": lambda saw, case: not isinstance(_new(saw, case)[0], dict),
                "logs_positional": lambda saw, case: any(
                    isinstance(entry, dict) and not entry.keys() <= _KEYS for entry in _new(saw, case)
                ),
                "keeps_tensors": _more("Tensor"),
                "as_text": _more("str"),
                "lists": _more("list"),
                "drops_none": _without(
                    lambda v: v is None,
                    lambda v: v is None or (type(v) is int and v == 0),
                    _empty,
                    lambda v: _empty(v) or (isinstance(v, np.ndarray) and not v.size),
                ),
                "tensors_only": _without(lambda value: not isinstance(value, torch.Tensor)),
            },
        ),
        handle_works("log_kwargs(layer, log)", silent=lambda saw, case: saw.after_removal == 0),
    ],
    raises={
        "flag_missing": r"missing 1 required positional argument",
        "two_arguments": r"takes 2 positional arguments but 3 were given",
        "returns_something": r"forward pre-hook must return None or a tuple",
        "shape_of_a_number": r"object has no attribute '(shape|size)'",
    }
    | CALLS_NOW,
)
