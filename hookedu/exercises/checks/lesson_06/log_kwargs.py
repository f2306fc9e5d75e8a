"""What decides about 06.3, `log_kwargs(layer, log)`."""

from collections.abc import Callable
from typing import Any

import torch

from hookedu.exercises.checks.common import CALLS_NOW, handle_works
from hookedu.exercises.criteria import Check, Gives, Of, Saw, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque, show
from hookedu.exercises.probes.lesson_06.log_kwargs import PROBE, Case, keywords, kinds
from hookedu.exercises.tools import same

_KEYS = {"mask", "bias", "scale"}


def _want(case: Case) -> list[Any]:
    """Return the log with every value as [name of its kind, value], as the probe observes it."""
    return [
        kinds(entry) for entry in [*case.log, *({k: _plain(v) for k, v in c.items()} for c in keywords(case))]
    ]


def _plain(value: Any) -> Any:
    return tuple(value.shape) if isinstance(value, torch.Tensor) else value


def _show(log: list[Any]) -> str:
    """Return a log as code: tuples and lists differ, and tensors are named as such."""
    shown = {"tuple": tuple, "Tensor": lambda value: Opaque("Tensor")}
    return show(
        [
            {k: shown.get(kind, lambda v: v)(v) for k, (kind, v) in entry.items()}
            if isinstance(entry, dict)
            else entry
            for entry in log
        ]
    )


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


def _calls(case: Case) -> str:
    """Return the calls as code."""
    log = f"log == {case.log}; " if case.log else ""
    mode = {"eval": "layer.eval(); ", "no_grad": "with torch.no_grad(): "}.get(case.setting, "")
    return (
        f"{log}{mode}layer(x, mask=torch.zeros({case.shape}), scale={case.first!r}); layer(x); "
        f"for _ in range(2): layer(x, mask=..., bias=nn.Parameter(...), scale={case.last!r})"
    )


EXERCISE = Exercise(
    PROBE,
    given=lambda saw, case: _calls(case),
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
            ok=lambda saw, case: saw.same_output and saw.same_keywords,
            essential=True,
            expected=Say("same_keywords"),
            got=[
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
            expected=lambda saw, case: f"log == {_show(_want(case))}",
            got=lambda saw, case: f"log == {_show(saw.log)}",
            mistakes={
                "fires_backward": lambda saw, case: saw.hooks == 0 and saw.backward,
                "not_registered": lambda saw, case: saw.hooks == 0 and not _new(saw, case),
                "removes_itself": lambda saw, case: saw.hooks_later < saw.hooks,
                "replaces_log": lambda saw, case: (
                    (len(saw.log) == 1 and not case.log)
                    or not same(saw.log[: len(case.log)], _want(case)[: len(case.log)])
                ),
                "rebinds_log": lambda saw, case: not _new(saw, case) and not saw.more,
                "skips_empty": lambda saw, case: len(_new(saw, case)) == 3 and all(_new(saw, case)),
                "skips_equal": lambda saw, case: len(_new(saw, case)) == 3,
                "reuses_dict": lambda saw, case: same(_new(saw, case), [saw.log[-1]] * 4) and saw.log[-1],
                "without_flag": lambda saw, case: not saw.flag and not any(_new(saw, case)),
                "names_only": lambda saw, case: _new(saw, case)[0] == ["mask", "scale"],
                "no_dict": lambda saw, case: not isinstance(_new(saw, case)[0], dict),
                "logs_positional": lambda saw, case: not _new(saw, case)[0].keys() <= _KEYS,
                "keeps_tensors": _more("Tensor"),
                "as_text": _more("str"),
                "lists": _more("list"),
                "drops_none": _without(
                    lambda v: v is None, lambda v: v is None or (type(v) is int and v == 0)
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
