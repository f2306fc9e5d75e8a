"""What decides about 05.1, `capture(module, seen)`."""

from typing import Any

import torch

from hookedu.exercises.checks.common import HANDLE, handle_works
from hookedu.exercises.checks.forward_hooks import CALLS_NOW, RETURNS_TUPLE, WRONG_ARGUMENTS, graph_kept
from hookedu.exercises.criteria import Check, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import bracketed, is_tuple, show
from hookedu.exercises.probes.lesson_05.capture import LENGTH, PROBE, Case
from hookedu.exercises.tools import same

_CALL = "capture(conv, seen)"
_X, _Y = (f"torch.full((1, 1, 4, 4), {{case.pictures[{n}]:.10g}})" for n in (0, 1))
_GIVEN = (
    f"seen = {{case.before}}; conv.{{case.mode}}(); {_CALL}; conv.weight[:, 0, 0, 0] = {{case.kernels}}; "
    f"x = {_X}; y = {_Y}; {{key.runs}}"
)
_ALSO = LENGTH + 1  # of the second list, when each list has received one pair
_RUNS = "net(x); net(y)", "net(x); net(y); net(y); with torch.no_grad(): net(x)"
_NOT_ITSELF = {
    "copies_input": lambda saw, key: not all(saw.itself),
    "computes_again": lambda saw, key: saw.runs > len(key.new),
    "replaces_output": lambda saw, key: saw.replaced,
    "marks_tensors": lambda saw, key: saw.marked,
    "tracks_input": lambda saw, key: saw.tracked,
}
_HANDLES = {
    "too_few_arguments": r"(?<!hook\(\)) missing 1 required positional argument",
    "calls_again": r"^RecursionError",
}


class _Key:
    """Outputs of the network, and what `seen` holds: the pairs of input and output of its convolution come last."""

    def __init__(self, case: Case) -> None:
        # Each window of a picture holds 9 times the same number, so a feature map does too, and pooling keeps it.
        pictures = [case.pictures[n] for n in case.runs]
        self.out = [9 * value * case.kernels for value in pictures]
        maps = [out.reshape(1, 2, 1, 1).expand(1, 2, 2, 2) for out in self.out]
        self.new = [(torch.full((1, 1, 4, 4), v), m) for v, m in zip(pictures, maps, strict=True)]
        self.runs, self.no_grad = _RUNS[case.no_grad], case.no_grad
        self.before = case.before
        self.seen = self.before + self.new


def _show_kept(value: Any) -> str:
    """Format what was kept for one call, tensors by first and last value and shape: they are too long for a line."""
    if isinstance(value, torch.Tensor):
        ends = f"{value.flatten()[0]:g} … {value.flatten()[-1]:g}" if value.numel() > 1 else show(value)
        dtype = f", dtype={value.dtype}" * (value.dtype != torch.float32)
        return f"tensor([{ends}], shape={tuple(value.shape)}{dtype})"
    if isinstance(value, list) or is_tuple(value):
        return bracketed(map(_show_kept, value), value)
    return show(value)


def _line(of: str) -> Any:
    """Return a line that shows the first item of `seen` that differs, as wanted ("key") or as observed ("saw")."""

    def line(saw: Any, key: Any) -> str:
        seen = (key if of == "key" else saw).seen
        differ = [n for n, pair in enumerate(saw.seen) if n >= len(key.seen) or not same(pair, key.seen[n])]
        n = differ[0] if differ else len(saw.seen)
        return f"seen[{n}] == {_show_kept(seen[n])}" if n < len(seen) else f"len(seen) == {len(seen)}"

    return line


def _new(saw: Any, key: Any) -> Any:
    return saw.seen[len(key.before) :]


EXERCISE = Exercise(
    PROBE,
    key=_Key,
    given=_GIVEN,
    checks=[
        Check(
            "unchanged",
            "out",
            lambda key: key.out,
            essential=True,
            label="net(x)",
            mistakes={"changes_output": True},
        ),
        graph_kept(
            _GIVEN,
            {"freezes": lambda saw, key: saw.frozen, "detaches_in_place": lambda saw, key: saw.detached},
        ),
        Check(
            "input_uncut",
            "cut_input",
            lambda key: False,
            essential=True,
            given="x = 2 * torch.full((1, 1, 4, 4), 3.0, requires_grad=True); capture(conv, []); conv(x)",
            expected="x.requires_grad == True",
            got="x.requires_grad == False",
            mistakes={"detaches_input": True},
        ),
        Check(
            "sees",
            ok=lambda saw, key: same(saw.seen, key.seen),
            points=1,
            essential=True,
            expected=_line("key"),
            got=_line("saw"),
            mistakes={
                "too_early": lambda saw, key: saw.early > 0,
                "only_training": lambda saw, key: key.before and same(saw.seen, key.before),
                "only_evaluation": lambda saw, key: same(saw.seen, key.before) and saw.in_other_mode,
                "fires_backward": lambda saw, key: saw.backward and not saw.hooks,
                "nothing_added": lambda saw, key: same(saw.seen, key.before) and saw.hooks,
                "removed_at_once": lambda saw, key: same(saw.seen, key.before) and saw.handle == HANDLE,
                "not_registered": lambda saw, key: same(saw.seen, key.before),
                "overwrites": lambda saw, key: (
                    same(saw.seen, key.new[-1:]) or (key.before and same(saw.seen, key.new))
                ),
                "only_with_grad": lambda saw, key: key.no_grad and same(saw.seen, key.seen[:-1]),
                "first_only": lambda saw, key: same(saw.seen, key.before + key.new[:1]),
                "at_the_front": lambda saw, key: same(saw.seen[::-1], key.seen),
                "registered_twice": lambda saw, key: (
                    saw.hooks > 1 and len(_new(saw, key)) == saw.hooks * len(key.new)
                ),
                "not_a_pair": lambda saw, key: (
                    isinstance(_new(saw, key)[0], torch.Tensor) or len(_new(saw, key)[0]) != 2
                ),
                "keeps_the_tuple": lambda saw, key: isinstance(_new(saw, key)[0][0], list),
                "wrong_order": lambda saw, key: same(_new(saw, key)[0], key.new[0][::-1]),
            },
        ),
        Check(
            "each_list",
            # What removes the hooks of others removes the first of these two as well, and is told so.
            ok=lambda saw, key: saw.lost or (saw.in_other_mode, saw.with_other, saw.also) == (1, 1, _ALSO),
            essential=True,
            given=(
                f"{_CALL}; n = len(seen); also = [('an', 'earlier pair')] * {LENGTH}; capture(conv, also); net(x); "
                "nn.Conv2d(1, 2, 3)(x)"
            ),
            expected=f"len(seen) - n, len(also) == 1, {_ALSO}",
            got="len(seen) - n, len(also) == {saw.with_other}, {saw.also}",
            mistakes={
                "other_modules": lambda saw, key: (
                    saw.in_other_mode == 1 < saw.with_other and saw.also == _ALSO
                ),
                "one_list": lambda saw, key: (saw.with_other, saw.also) in ((0, _ALSO + 1), (2, _ALSO - 1)),
            },
        ),
        Check(
            "itself",
            ok=lambda saw, key: not any(failed(saw, key) for failed in _NOT_ITSELF.values()),
            points=1,
            expected=[
                Say("itself", when=_NOT_ITSELF["copies_input"]),
                Say("runs", when=_NOT_ITSELF["computes_again"], n=lambda saw, key: len(key.new)),
                Say("passed_on", when=_NOT_ITSELF["replaces_output"]),
                Say("unmarked", when=_NOT_ITSELF["marks_tensors"]),
                "x.requires_grad == False",
            ],
            got=[
                Say("not_itself", when=_NOT_ITSELF["copies_input"]),
                Say("runs", when=_NOT_ITSELF["computes_again"], n=lambda saw, key: saw.runs),
                Say("not_passed_on", when=_NOT_ITSELF["replaces_output"]),
                Say("marked", when=_NOT_ITSELF["marks_tensors"]),
                "x.requires_grad == True",
            ],
            mistakes=_NOT_ITSELF,
        ),
        handle_works(_CALL, silent=lambda saw, key: saw.after_removal == 0),
    ],
    raises=_HANDLES | RETURNS_TUPLE | CALLS_NOW | WRONG_ARGUMENTS,
)
