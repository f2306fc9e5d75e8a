"""What is observed of 14.2, `logit_lens(model, ids)`: the logits at every depth, and how often a block ran."""

import contextlib
from typing import Any, NamedTuple

import torch

from hookedu.exercises.conduct import Interruption
from hookedu.exercises.probes.lesson_14.shared import Sizes, draw_prompts, draw_sizes, look_on, make_model
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies, module_hooks, other_weights

CONTEXT = 20  # the most words


class Case(NamedTuple):
    """A model and prompts."""

    sizes: Sizes
    ids: torch.Tensor
    again: bool  # whether an equal call precedes it, when the model has other weights


def make_case(rng: Draw) -> Case:
    """Return a case whose numbers of depths, prompts and words all differ; a single prompt from turn 1 on.

    In turn 1 there are so many blocks that some numbers have two digits, and the names are out of order when sorted; in
    turn 2 fewer than in the model of the lesson, so that what was kept before would show, and more words than in its
    prompts; but at most 4096 logits at all positions.
    """
    depth, batch, words = ((3, 2, (5, 6)), (12, 1, (4, 6)), (2, 1, (18, 20)))[rng.turn]
    return Case(draw_sizes(rng, (depth,)), draw_prompts(rng, batch, rng.choice(words)), rng.turn == 2)


def observe(logit_lens: Any, case: Case) -> dict[str, Any]:
    """Look through a model on which others have left things; `runs` counts the calls of its block 0 alone."""
    model = make_model(case.sizes, CONTEXT)
    calls, first = look_on(model), model.blocks[0]
    hooks = module_hooks(model)
    if case.again:
        with other_weights(model):
            logit_lens(model, case.ids)
        calls.clear()
    result = copies(logit_lens(model, case.ids))
    # What is left without an exception, too, is left for another reason, and conduct tells.
    left = _left_by_lens(logit_lens, case) if module_hooks(model) == hooks else 0
    return {"result": result, "runs": calls[first], "left_by_lens": left}


def _left_by_lens(logit_lens: Any, case: Case) -> int:
    """Return how many hooks are left by an exception that `unembed` raises when the model has run."""
    model, ran = make_model(case.sizes, CONTEXT), []
    model.register_forward_hook(lambda *of: ran.append(1))

    def interrupt(module: Any, args: Any) -> None:
        if ran:
            raise Interruption("out of memory")

    model.unembed.register_forward_pre_hook(interrupt)
    hooks = module_hooks(model)
    with contextlib.suppress(Interruption):
        logit_lens(model, case.ids)
    return module_hooks(model) - hooks


PROBE = Probe("14.2", "logit_lens", make_case, observe, cases=3, restores=True)
