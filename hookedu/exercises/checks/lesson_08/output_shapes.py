"""What decides about 08.2, `output_shapes(model, x)`."""

from typing import Any

import torch
from torch import nn

from hookedu.exercises.checks.lesson_08.shared import HOW_CALLED, NOT_AS_CALLED
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque, show
from hookedu.exercises.probes.lesson_08.output_shapes import PROBE, SmallResNet
from hookedu.exercises.structures import mapped


class _Shapes:
    """Shapes of x and, by name, of the input and output of each child; and the name of the last child."""

    def __init__(self, case: tuple[SmallResNet, torch.Tensor]) -> None:
        model, x = case
        self.x, self.inputs, self.outputs = tuple(x.shape), {}, {}
        self.last = [name for name, _ in model.named_children()][-1]
        self.inside = {name for name, _ in model.named_modules() if "." in name}
        with torch.no_grad():
            for name in model.order:
                child = getattr(model, name)
                x = x.flatten(1) if isinstance(child, nn.Linear) else x
                self.inputs[name] = tuple(x.shape)
                x = child(x)
                self.outputs[name] = tuple(x.shape)


def _written(found: Any) -> str:
    """Write the shapes, and tensors by their shapes."""
    return show(
        mapped(lambda v: Opaque(f"Tensor, {tuple(v.shape)}") if isinstance(v, torch.Tensor) else v, found)
    )


EXERCISE = Exercise(
    PROBE,
    key=_Shapes,
    given="output_shapes(model, x)",
    checks=[
        Check(
            "shapes",
            "found",
            want=lambda shapes: shapes.outputs,
            points=2,
            essential=True,
            given="x.shape = {key.x}; output_shapes(model, x)",
            expected="{want}",
            got=lambda saw, shapes: _written(saw.found),
            mistakes={
                "returns_nothing": lambda saw, shapes: saw.found is None,
                "never_runs": lambda saw, shapes: saw.found == {},
                # What the child that ran last put out, under the name of the one that is defined last.
                "late_binding": Gives(lambda shapes: {shapes.last: [*shapes.outputs.values()][-1]}),
                "last_only": Gives(lambda shapes: {shapes.last: shapes.outputs[shapes.last]}),
                "class_names": lambda saw, shapes: saw.found.keys() >= {"Conv2d"},
                "keeps_earlier": lambda saw, shapes: (
                    saw.found.keys() > shapes.outputs.keys()
                    and all(saw.found[n] == list(s) for n, s in shapes.outputs.items())
                    and any(name.split(".")[0] not in {"", *shapes.outputs} for name in saw.found)
                ),
                "every_module": lambda saw, shapes: shapes.inside & saw.found.keys(),
                "keeps_tensors": lambda saw, shapes: "tensor" in str(saw.found.values()).lower(),
                "input_shapes": Gives(lambda shapes: shapes.inputs),
            },
        ),
        Check(
            "once",
            ok=lambda saw, shapes: saw.runs == 1 and saw.called == [True] and saw.handed_on,
            points=1,
            expected=Say("as_called"),
            got=HOW_CALLED,
            mistakes={"runs_again": lambda saw, shapes: saw.runs > 1, **NOT_AS_CALLED},
        ),
        Check(
            "same_modules",
            ok=lambda saw, shapes: not saw.replaced,
            points=1,
            given="output_shapes(model, x); list(model.modules())",
            expected=Say("same_modules"),
            got=Say("other_modules"),
            mistakes={"replaces_children": True},
        ),
        Check(
            "no_marks",
            ok=lambda saw, shapes: not saw.marks and not saw.stuck,
            points=1,
            given=[
                Say("handle_of_before", when=lambda saw, shapes: not saw.marks),
                "output_shapes(model, x); vars(module)",
            ],
            expected=[Say("comes_off", when=lambda saw, shapes: not saw.marks), Say("no_marks")],
            got=[Say("stuck", when=lambda saw, shapes: not saw.marks), Say("marks")],
            mistakes={
                "marks_modules": lambda saw, shapes: saw.marks,
                "replaces_table": lambda saw, shapes: saw.stuck,
            },
        ),
    ],
    raises={
        "chains_children": r"mat1 and mat2 shapes cannot be multiplied",
        "tuple_shape": r"'tuple' object has no attribute '(?!dim')",
        "hook_returns": r"'(?:torch\.)?(?:Size|tuple)' object has no attribute",
    },
)
