"""What is observed of 14.5, `steering(model, number, direction, strength)`: runs inside, after, nested, and broken."""

from typing import Any, NamedTuple, NoReturn

import torch

from hookedu.exercises.conduct import Interruption, Stopped
from hookedu.exercises.probes.lesson_14.shared import Sizes, draw_prompts, draw_sizes, look_on, make_model
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies, is_manager, module_hooks
from hookedu.models.stories import Cache, StoryModel

# What is raised in turn: an answer may single out neither a type nor its subclasses.
ERRORS = (Interruption, ValueError, Stopped)

_RUNS = ("inside", "others", "one_word", "outputs", "identical", "gradient", "before", "after")
_NESTED = ("nested", "inner_left", "after_nested")
_ON_ERROR = ("left_by_error", "left_after", "after_error", "escaped", "raised", "instead")
_STATE = ("grad_inside", "grad_switched_on", "hooks", "left", "lost", "values", "direction", "in_place")


class Case(NamedTuple):
    """A model, prompts and other prompts, and two ways to steer: the second inside the first."""

    turn: int
    sizes: Sizes
    ids: torch.Tensor
    others: torch.Tensor
    number: int
    direction: torch.Tensor
    strength: float
    second: int  # block
    turned: torch.Tensor  # direction
    inner: float  # strength


def make_case(rng: Draw) -> Case:
    """Return a case: the first block, the last with a negative strength, and a strength of 0.

    The one inside steers the same block in turn 0, and another by the same direction in turn 1.
    """
    turn, strength = rng.turn, rng.choice((0.5, 1.5, 2.0))
    depth = (2, 2, 3)[turn]
    sizes = draw_sizes(rng, (depth,))
    words = rng.sample((3, 4, 5), 2)
    direction = torch.tensor([rng.choice((-1, 1)) * rng.randint(2, 6) / 4 for _ in range(sizes.width)])
    return Case(
        turn,
        sizes,
        draw_prompts(rng, (2, 1, 3)[turn], words[0]),
        draw_prompts(rng, (3, 2, 1)[turn], words[1]),
        number=(0, depth - 1, 1)[turn],
        direction=direction,
        strength=(strength, -strength, 0)[turn],
        second=0,
        turned=direction.clone() if turn == 1 else direction.roll(1) * 1.5,
        inner=-1 if turn == 0 else 1,
    )


def observe(steering: Any, case: Case) -> dict[str, Any]:
    """Run a model before, inside and after a block; then in nested blocks, and with errors inside.

    Not every turn has all of it, as a run takes a millisecond: what was not observed is None.
    """
    saw: dict[str, Any] = dict.fromkeys(_RUNS + _NESTED + _ON_ERROR + _STATE)
    model, direction, ids = make_model(case.sizes), case.direction.clone(), case.ids
    look_on(model)
    block, held = model.blocks[case.number], []  # tensors that others hold, each with a copy

    def hold(module: Any, args: Any, output: Any) -> None:
        held.extend((tensor, copies(tensor)) for tensor in (args[0], output))

    block.register_forward_hook(hold)
    weights, plain, hooks = copies(dict(model.state_dict())), copies(model(ids)), module_hooks(model)

    manager = steering(model, case.number, direction, case.strength)
    saw |= {"manager": manager, "is_manager": is_manager(manager)}
    if not saw["is_manager"]:
        return saw
    if case.turn == 0:
        saw["before"] = torch.equal(model(ids), plain)
    with manager:
        saw |= {"hooks": module_hooks(model) - hooks, "grad_inside": torch.is_grad_enabled()}
        inside, saw["outputs"] = _with_outputs(model, ids)
        saw["inside"] = copies(inside)
        if case.turn == 1 and inside.requires_grad:
            (grad,) = torch.autograd.grad(inside.sum(), model.embed.weight, allow_unused=True)
            saw["gradient"] = copies(grad)
        if case.strength == 0:
            saw["identical"] = torch.equal(inside, plain)
        with torch.no_grad():
            saw["others"] = copies(model(case.others))
        if case.turn:
            model(ids[:, :-1], cache := Cache())
            saw["one_word"] = copies(model(ids[:, -1:], cache))
        late = block.register_forward_hook(lambda *of: None)
    saw["lost"] = late.id not in block._forward_hooks
    late.remove()
    saw |= {"after": torch.equal(model(ids), plain), "left": module_hooks(model) - hooks}

    if case.turn < 2:
        with steering(model, case.number, direction, case.strength):
            with steering(model, case.second, case.turned, case.inner):
                saw["nested"] = copies(model(ids))
            saw["inner_left"] = copies(model(ids))
    if case.turn == 0:
        # Weights that are off by a rounding error need not show in the logits.
        saw["after_nested"] = torch.equal(model(ids), plain) and _as_noted(model, weights)
        with torch.no_grad(), steering(model, case.number, direction, case.strength):
            saw["grad_switched_on"] = torch.is_grad_enabled()
    if case.turn == 1:
        saw |= _with_errors(steering, case, model)
        saw["after_error"] = torch.allclose(model(ids), plain, rtol=1e-4, atol=1e-4)  # bits: see "values"
    saw |= {"in_place": not all(torch.equal(*pair) for pair in held), "direction": copies(direction)}
    saw["values"] = _as_noted(model, weights)
    return saw


def _as_noted(model: StoryModel, weights: dict[str, torch.Tensor]) -> bool:
    """Check whether parameters and buffers have the values that were noted."""
    return all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())


def _with_outputs(model: StoryModel, ids: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return the logits, and what each block puts out, as hooks see it that are registered last."""
    seen: list[torch.Tensor] = []
    # Looked up now: an answer may have put a module of its own in the place of a block.
    handles = [
        block.register_forward_hook(lambda module, args, output: seen.append(copies(output)))
        for block in model.blocks
    ]
    logits = model(ids)
    for handle in handles:
        handle.remove()
    return logits, seen


def _touched(model: StoryModel, blocks: list[Any]) -> int:
    """Return how many hooks there are, and how many blocks have a `forward` of their own or are not these."""
    changed = (
        "forward" in vars(now) or now is not block for now, block in zip(model.blocks, blocks, strict=True)
    )
    return module_hooks(model) + sum(changed)


def _with_errors(steering: Any, case: Case, model: StoryModel) -> dict[str, Any]:
    """Raise errors inside, in the model and beside it.

    Return the first that does not come out, and the hooks left by the first that leaves any.
    """
    saw: dict[str, Any] = {"escaped": True, "left_by_error": 0, "left_after": None}
    hooks, blocks = module_hooks(model), list(model.blocks)
    for kind in ERRORS:
        said = (kind if kind is ValueError else kind.__mro__[1]).__name__
        error, raised = kind("out of memory"), None

        def fail(*args: Any, error: BaseException = error) -> NoReturn:
            raise error

        try:
            with steering(model, case.number, case.direction, case.strength):
                if kind is ValueError:
                    raise error
                with model.norm.register_forward_pre_hook(fail):
                    model(case.ids)
        except BaseException as caught:
            if isinstance(caught, KeyboardInterrupt) and not isinstance(caught, Stopped):
                raise
            raised = caught
        if raised is not error and saw["escaped"]:
            saw |= {
                "escaped": False,
                "raised": said,
                "instead": raised and f"{type(raised).__name__}: {raised}",
            }
        if saw["left_after"] is None and _touched(model, blocks) > hooks:
            saw["left_after"] = said
        saw["left_by_error"] = saw["left_by_error"] or max(0, module_hooks(model) - hooks)
    return saw


PROBE = Probe("14.5", "steering", make_case, observe, cases=3, yields=True)
