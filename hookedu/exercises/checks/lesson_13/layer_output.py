"""What decides about 13.2, `layer_output(compiled, name, x)`."""

from typing import Any

import torch

from hookedu.exercises.checks.common import detached, must_be
from hookedu.exercises.checks.forward_hooks import CALLS_NOW, WRONG_ARGUMENTS
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show, show_kind
from hookedu.exercises.probes.lesson_13.layer_output import LAYERS, PROBE, doubles
from hookedu.exercises.tools import all_close, close

_CALLS = " and ".join(f"layer_output(compiled, {name!r}, x)" for name in LAYERS)


class Key:
    """Inputs and outputs of both layers."""

    def __init__(self, case: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> None:
        first, self.second, self.x = case
        self.hidden = self.x @ first.T
        self.between = 2 * self.hidden.tanh()  # in training mode
        self.head = self.between @ self.second.T
        self.of_doubles = 2 * (doubles(self.x) @ first.T.double()).tanh() @ self.second.T.double()


def _both(*outputs: torch.Tensor) -> dict[str, torch.Tensor]:
    return dict(zip(LAYERS, outputs, strict=True))


def _kind(output: Any) -> str:
    return f"{output.dtype} {[*output.shape]}" if isinstance(output, torch.Tensor) else show_kind(output)


def _converted(output: Any, wanted: torch.Tensor) -> bool:
    """Check whether an output has the wanted numbers, but in another dtype or shape."""
    return (
        isinstance(output, torch.Tensor)
        and _kind(output) != _kind(wanted)
        and output.numel() == wanted.numel()
        and torch.allclose(output.flatten().double(), wanted.flatten().double(), rtol=1e-2)
    )


def _first_converted(saw: Any, key: Key) -> bool:
    return any(_converted(saw.outputs[name], wanted) for name, wanted in _both(key.hidden, key.head).items())


def _both_shown(outputs: dict[str, Any], saw: Any, key: Key) -> str:
    """Write both outputs; by dtype and shape where their numbers are right."""
    if _first_converted(saw, key):
        return "; ".join(f"{name}: {_kind(output)}" for name, output in outputs.items())
    return f"outputs == {show(outputs)}"


EXERCISE = Exercise(
    PROBE,
    key=Key,
    given=f"x = {{key.x}}; compiled(x); {_CALLS}",
    checks=[
        Check(
            "output",
            "outputs",
            want=lambda key: _both(key.hidden, key.head),
            equal=all_close,
            expected=lambda saw, key: _both_shown(_both(key.hidden, key.head), saw, key),
            got=lambda saw, key: _both_shown(saw.outputs, saw, key),
            points=3,
            essential=True,
            mistakes={
                "never_fired": lambda saw, key: all(o is None for o in saw.outputs.values()),
                "overwritten": Gives(lambda key: _both(key.hidden.tanh(), 3 * key.head)),
                "models_output": Gives(lambda key: _both(3 * key.head, 3 * key.head)),
                "its_input": Gives(lambda key: _both(key.x, key.between)),
                "layer_alone": Gives(lambda key: _both(key.hidden, key.x @ key.second.T)),
                "other_mode": Gives(lambda key: _both(key.hidden, key.head / 2)),
                "a_list": lambda saw, key: all(
                    isinstance(o, list) and len(o) == 1 for o in saw.outputs.values()
                ),
                "converted": _first_converted,
            },
        ),
        Check(
            "settings",
            ok=lambda saw, key: not saw.settings,
            given=_CALLS,
            expected=Say("same_settings"),
            got=Say("changed_setting", name=lambda saw, key: saw.settings[0]),
            mistakes={"changes_settings": True},
        ),
        must_be("stance", True, Say("afterwards"), Say("runs"), Say("rests"), "stance_stays"),
        Check(
            "rebuilt",
            # Where something was left behind, and only the next run compiles anew, that is what the message says.
            ok=lambda saw, key: saw.rebuilt == 0 or (saw.rebuilt_inside == 0 and bool(saw.conduct)),
            points=1,
            given=_CALLS,
            expected=Say("none_rebuilt"),
            got=Say("rebuilt"),
            mistakes={"compiles_anew": True},
        ),
        Check(
            "left",
            ok=lambda saw, key: saw.left == 0 and not saw.unrestored,
            points=1,
            given=[Say("raises_inside", when=lambda saw, key: saw.left == 0), _CALLS],
            expected=[
                Say("comes_through", when=lambda saw, key: saw.left == 0 and "swallowed" in saw.unrestored),
                Say("all_restored", when=lambda saw, key: saw.left == 0),
                Say("hooks_left", value=0),
            ],
            got=[
                Say("hooks_left", when=lambda saw, key: saw.left, value=lambda saw, key: saw.left),
                Say("swallowed", when=lambda saw, key: "swallowed" in saw.unrestored),
                Say("hook_left_behind", when=lambda saw, key: "hooks" in saw.unrestored),
                Say("grad_left_behind", when=lambda saw, key: "grad mode" in saw.unrestored),
                Say("stance_left_behind"),
            ],
            mistakes={
                "leaves_hook": lambda saw, key: saw.left,
                "swallows_it": lambda saw, key: "swallowed" in saw.unrestored,
                "unrestored": lambda saw, key: saw.unrestored,
            },
        ),
        Check(
            "as_given",
            ok=lambda saw, key: close(saw.of_doubles, key.of_doubles, 1e-10),
            essential=True,
            given=lambda saw, key: (
                f"x: {_kind(doubles(key.x))}; output = layer_output(compiled, {LAYERS[1]!r}, x)"
            ),
            expected=lambda saw, key: f"output: {_kind(key.of_doubles)}",
            got=lambda saw, key: f"output: {_kind(saw.of_doubles)}",
            mistakes={"converted": lambda saw, key: _converted(saw.of_doubles, key.of_doubles)},
        ),
        must_be("modes", 0, _CALLS, Say("same_modes"), Say("other_modes"), "switches_mode"),
        detached(_CALLS),
    ],
    raises={
        "nothing_kept": r"^IndexError|^KeyError: (?!'(encoder\.fc|head)')|^StopIteration|^UnboundLocalError|cannot access free variable",
        "prefix": r"^KeyError: '(encoder\.fc|head)'|has no attribute 'encoder\.fc'",
        **CALLS_NOW,
        **WRONG_ARGUMENTS,
    },
)
