"""What is observed of 14.3, `patched(model, clean, corrupted, number, place)`: logits, and what others had kept."""

from typing import Any, NamedTuple

import torch

from hookedu.exercises.probes.lesson_14.patching import after_error, keep_outputs, make_mixed
from hookedu.exercises.probes.lesson_14.shared import Sizes, draw_prompts, draw_sizes
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies, module_hooks, other_weights


class Case(NamedTuple):
    """The arguments of one call; `after` is what happened before it: "", "error" or "other weights"."""

    sizes: Sizes
    clean: torch.Tensor
    corrupted: torch.Tensor
    number: int
    place: int
    after: str


# Prompts, words, blocks, block and word to patch. Blocks and words of number 0 occur, and the last of both; and where
# there are 12 blocks, the names of others begin like that of the block to patch.
_PLACES = ((3, 5, 3, 1, 2), (2, 4, 3, 2, 3), (1, 6, 12, 1, 3), (2, 5, 2, 0, 0))
_AFTER = ("", "other weights", "error", "")


def make_case(rng: Draw) -> Case:
    """Return a case; prompts differ in all words, so that each word that is patched shows.

    In turn 2 they have their beginnings in common, as in the lesson, and the word to patch, which follows one that differs.
    """
    batch, words, depth, number, place = _PLACES[rng.turn]
    sizes = draw_sizes(rng, (depth,))
    clean, corrupted = draw_prompts(rng, batch, words), draw_prompts(rng, batch, words)
    while bool((clean == corrupted).any()):
        corrupted = draw_prompts(rng, batch, words)
    if rng.turn == 2:
        corrupted[:, [0, 1, place]] = clean[:, [0, 1, place]]
    return Case(sizes, clean, corrupted, number, place, _AFTER[rng.turn])


def observe(patched: Any, case: Case) -> dict[str, Any]:
    """Patch once, while somebody else keeps what each block puts out; an interrupted or other call may precede."""
    call = case.clean, case.corrupted, case.number, case.place
    failed = {"left_after_error": 0, "swallowed": False}
    if case.after == "error":
        failed = after_error(patched, case.sizes, *call)
    model, before = make_mixed(case.sizes), None
    changed = keep_outputs(model)
    if case.after == "other weights":
        with other_weights(model):
            before = copies(patched(model, *call))
    hooks = module_hooks(model)
    result = copies(patched(model, *call))
    return {
        "before": before,
        "result": result,
        "spoilt": changed(),
        "left": module_hooks(model) - hooks,
    } | failed


PROBE = Probe("14.3", "patched", make_case, observe, cases=4, restores=True)
