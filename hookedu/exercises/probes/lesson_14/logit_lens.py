"""What is observed of 14.2, `logit_lens(model, ids)`: the logits at every depth, and how often a block ran."""

from typing import Any, NamedTuple

import torch

from hookedu.exercises.probes.lesson_14.shared import Sizes, draw_prompts, draw_sizes, look_on, make_model
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies

CONTEXT = 20  # the most words


class Case(NamedTuple):
    """A model and prompts."""

    sizes: Sizes
    ids: torch.Tensor


def make_case(rng: Draw) -> Case:
    """Return a case whose numbers of depths, prompts and words all differ; a single prompt from turn 1 on.

    In turn 1 there are more blocks than in the model of the lesson, in turn 2 fewer, so that what was kept before would
    show, and more words than in its prompts; but at most 4096 logits at all positions.
    """
    depth, batch, words = ((3, 2, (5, 6)), (5, 1, (4, 7)), (2, 1, (18, 20)))[rng.turn]
    return Case(draw_sizes(rng, (depth,)), draw_prompts(rng, batch, rng.choice(words)))


def observe(logit_lens: Any, case: Case) -> dict[str, Any]:
    """Look through a model on which others have left things; `runs` counts the calls of its block 0 alone."""
    model = make_model(case.sizes, CONTEXT)
    calls, first = look_on(model), model.blocks[0]
    result = copies(logit_lens(model, case.ids))
    return {"result": result, "runs": calls[first]}


PROBE = Probe("14.2", "logit_lens", make_case, observe, cases=3, restores=True)
