"""What decides about 14.2, `logit_lens(model, ids)`."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import layer_norm

from hookedu.exercises.checks.common import equals, none_left
from hookedu.exercises.checks.forward_hooks import CALLS_NOW
from hookedu.exercises.checks.lesson_14.shared import first_difference, near
from hookedu.exercises.criteria import Check, Gives, Saw
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_14.logit_lens import CONTEXT, PROBE, Case
from hookedu.exercises.probes.lesson_14.shared import make_model
from hookedu.exercises.tools import other_weights


class Key:
    """The residual stream at each depth, and other things that pass by; the model itself makes logits of them."""

    def __init__(self, case: Case, model: Any = None) -> None:
        self.case, ids = case, case.ids
        self.model: Any = model or make_model(case.sizes, CONTEXT)  # of whose blocks the type is not known
        with torch.no_grad():
            self.embedded = self.model.embed(ids)
            self.stream = [self.embedded + self.model.position.weight[: ids.shape[1]]]
            self.no_positions = [self.embedded]
            self.between, self.added = [], []
            for block in self.model.blocks:
                x = self.stream[-1]
                between = x + block.attention(block.norm1(x))[0]
                self.between.append(between)
                self.added.append(block.mlp(block.norm2(between)))
                self.stream.append(between + self.added[-1])
                self.no_positions.append(block(self.no_positions[-1]))
            self.lens = self.logits(self.stream)[:, :, -1]

    @property
    def stale(self) -> torch.Tensor:
        """Return the lens of the call before, when the model had other weights."""
        with other_weights(self.model):
            return Key(self.case._replace(again=False), self.model).lens

    def logits(self, stream: list[torch.Tensor]) -> torch.Tensor:
        """Return the logits at all positions, for residual streams (batch, words, width)."""
        with torch.no_grad():
            return self.model.unembed(self.model.norm(torch.stack(stream)))

    def plain_norm(self) -> torch.Tensor:
        """Return the lens with a norm that has no weights of its own."""
        x = torch.stack(self.stream)[:, :, -1]
        return self.model.unembed(layer_norm(x, x.shape[-1:]))

    @property
    def without_norm(self) -> torch.Tensor:
        """Return what `unembed` alone makes at the last position."""
        return self.model.unembed(torch.stack(self.stream)[:, :, -1])


def _last(saw: Saw, key: Key) -> torch.Tensor:
    """Return the answer without its positions but the last, if it has all of them."""
    return saw.result[:, :, -1] if saw.result.dim() == 4 else saw.result


def _rows(start: int, end: int | None) -> Any:
    """Return the condition that all depths but some at an end are there, in order."""
    return lambda saw, key: near(_last(saw, key), key.lens[start:end])


def _lens_of(stream: Callable[[Key], list[torch.Tensor]]) -> Any:
    """Return the condition that it is the lens of other tensors than the residual stream, whatever comes before them."""

    def holds(saw: Saw, key: Key) -> bool:
        wanted = key.logits(stream(key))[:, :, -1]
        return near(_last(saw, key)[-len(wanted) :], wanted)

    return holds


EXERCISE = Exercise(
    PROBE,
    key=Key,
    given="model = {case.sizes.code}; ids = {case.ids}; result = logit_lens(model, ids)",
    checks=[
        Check(
            "lens",
            "result",
            want=lambda key: key.lens,
            points=3,
            essential=True,
            equal=near,
            **first_difference("result", lambda saw, key: saw.result, lambda key: key.lens),
            mistakes={
                "no_return": lambda saw, key: saw.result is None,
                "kept_before": lambda saw, key: key.case.again and near(saw.result, key.stale),
                "a_list": lambda saw, key: isinstance(saw.result, list),
                "all_positions": Gives(lambda key: key.logits(key.stream)),
                "first_position": Gives(lambda key: key.logits(key.stream)[:, :, 0]),
                "last_prompt": Gives(lambda key: key.logits(key.stream)[:, -1]),
                "batch_first": Gives(lambda key: key.lens.transpose(0, 1)),
                "squeezed": lambda saw, key: key.lens.shape[1] == 1 and near(saw.result, key.lens[:, 0]),
                "first_prompt": Gives(lambda key: key.lens[:, 0]),
                "one_row": Gives(lambda key: key.lens.flatten(0, 1)),
                "backwards": Gives(lambda key: key.lens.flip(0)),
                "no_norm": Gives(lambda key: key.without_norm),
                "no_norm_but_last": Gives(lambda key: torch.cat([key.without_norm[:-1], key.lens[-1:]])),
                "plain_norm": Gives(lambda key: key.plain_norm()),
                "no_unembed": Gives(lambda key: key.model.norm(torch.stack(key.stream)[:, :, -1])),
                "probabilities": Gives(
                    lambda key: key.lens.softmax(-1), lambda key: key.lens.log_softmax(-1)
                ),
                "likeliest": Gives(lambda key: key.lens.argmax(-1)),
                "no_embedding": _rows(1, None),
                "no_last_block": _rows(0, -1),
                "ends_twice": lambda saw, key: near(_last(saw, key), torch.cat([key.lens, key.lens[-1:]])),
                "no_positions": lambda saw, key: near(
                    _last(saw, key), torch.cat([key.logits([key.embedded])[:, :, -1], key.lens[1:]])
                ),
                "by_hand": _lens_of(lambda key: key.no_positions),
                "always_the_end": Gives(lambda key: key.lens[-1:].expand_as(key.lens)),
                "only_added": _lens_of(lambda key: key.added),
                "between": _lens_of(lambda key: key.between),
            },
        ),
        equals(
            "runs",
            lambda key: 1,
            {"runs_twice": lambda saw, key: saw.runs > 1, "never_runs": lambda saw, key: saw.runs == 0},
            words="runs",
        ),
        none_left("logit_lens(model, ids)", "lens_raises", observed="left_by_lens"),
    ],
    raises={
        "args_is_tuple": r"'tuple' object has no attribute|tuple indices must be integers|not tuple$|got (a )?tuple",
        "pre_hook_arguments": r"missing 1 required positional argument: '(out\w*|o)'",
        "wrong_arguments": r"takes (?:from \d+ to )?\d+ positional arguments? but [2345] were given",
        **CALLS_NOW,
    },
)
