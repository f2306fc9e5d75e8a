"""What is observed of 14.4, `patching_map(model, clean, corrupted, right, wrong)`: the map, and how often `clean` was read."""

from typing import Any, NamedTuple

import torch

from hookedu.exercises.probes.lesson_14.patching import after_error, keep_outputs, make_mixed
from hookedu.exercises.probes.lesson_14.shared import Sizes, draw_prompts, draw_sizes
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies, module_hooks, other_weights
from hookedu.models.stories import WORDS


class Case(NamedTuple):
    """The arguments of one call; `after` is what happened before it: "", "error" or "other weights"."""

    sizes: Sizes
    clean: torch.Tensor
    corrupted: torch.Tensor
    right: int
    wrong: int
    after: str


# Words and blocks. The first is observed four times, so it is small; the last has more blocks than the model of the lesson.
_SIZES = ((3, 2), (4, 2), (3, 5))
_AFTER = ("", "other weights", "error")


def make_case(rng: Draw) -> Case:
    """Return a case. In the last, a word that both prompts share follows one that differs: a patch there matters too.

    The word of number 0, which counts as false, is the right one and the wrong one once.
    """
    words, depth = _SIZES[rng.turn]
    sizes = draw_sizes(rng, (depth,))
    clean = draw_prompts(rng, 1, words)
    corrupted = draw_prompts(rng, 1, words)
    while bool((clean == corrupted).any()):
        corrupted = draw_prompts(rng, 1, words)
    if rng.turn == 2:
        corrupted[:, 1] = clean[:, 1]
    right, wrong = rng.sample(range(1, len(WORDS)), 2)
    right, wrong = ((right, wrong), (0, wrong), (right, 0))[rng.turn]
    return Case(sizes, clean, corrupted, right, wrong, _AFTER[rng.turn])


def observe(patching_map: Any, case: Case) -> dict[str, Any]:
    """Ask for the map while others keep what each block puts out, and count how often `clean` is read.

    An interrupted call, or one with other weights, may precede it.
    """
    call = case.clean, case.corrupted, case.right, case.wrong
    failed = {"left_after_error": 0, "swallowed": False}
    if case.after == "error":
        failed = after_error(patching_map, case.sizes, *call)
    model, before = make_mixed(case.sizes), None
    changed = keep_outputs(model)
    reads: list[bool] = []
    clean = case.clean[0].clone()

    def note(module: Any, args: tuple[torch.Tensor]) -> None:
        # A batch may hold both prompts.
        ids = args[0]
        reads.append(ids.shape[-1] == len(clean) and bool((ids == clean).all(-1).any()))

    model.embed.register_forward_pre_hook(note)
    if case.after == "other weights":
        with other_weights(model):
            before = copies(patching_map(model, *call))
    reads.clear()
    hooks = module_hooks(model)
    result = copies(patching_map(model, *call))
    return {
        "before": before,
        "result": result,
        "reads": sum(reads),
        "spoilt": changed(),
        "left": module_hooks(model) - hooks,
    } | failed


PROBE = Probe("14.4", "patching_map", make_case, observe, cases=3, restores=True)
