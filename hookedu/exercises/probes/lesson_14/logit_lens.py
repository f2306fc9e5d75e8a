"""What is observed of 14.2, `logit_lens(model, ids)`: the logits at every depth, and how often a block ran."""

from typing import Any, NamedTuple

import torch

from hookedu.exercises.probes.lesson_14.shared import Sizes, draw_prompts, draw_sizes, look_on, make_model
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies


class Case(NamedTuple):
    """A model and prompts."""

    sizes: Sizes
    ids: torch.Tensor


def make_case(rng: Draw) -> Case:
    """Return a case whose numbers of depths, prompts and words all differ; a single prompt in turn 1."""
    depth, batch = ((3, 2), (4, 1), (2, 3))[
        rng.turn
    ]  # the last is the smallest: what was kept before would show
    words = rng.choice([n for n in (4, 5, 6) if n != depth + 1])  # at most 4096 logits at all positions
    return Case(draw_sizes(rng, (depth,)), draw_prompts(rng, batch, words))


def observe(logit_lens: Any, case: Case) -> dict[str, Any]:
    """Look through a model on which others have left things; `runs` counts the calls of its block 0 alone."""
    model = make_model(case.sizes)
    calls, first = look_on(model), model.blocks[0]
    result = copies(logit_lens(model, case.ids))
    return {"result": result, "runs": calls[first]}


PROBE = Probe("14.2", "logit_lens", make_case, observe, cases=3, restores=True)
