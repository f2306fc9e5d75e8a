"""What is observed of 03.5, `reverse_gradient(x, strength)`: its value, both gradients, and calls without a graph."""

from typing import Any

import torch

from hookedu.exercises.probes.lesson_03.shared import Paths, shares_memory, transposed
from hookedu.exercises.probing import Draw, Probe, hooks_on
from hookedu.exercises.tools import copies, noted, whole

Case = tuple[Paths, torch.Tensor, float]


def make_case(rng: Draw) -> Case:
    """Return (paths, u, strength): x is the y of these paths, and u the gradient that it gets from its other use.

    An x of several dimensions is not contiguous; in turn 2 it is a single number.
    """
    paths = Paths.make(rng, {2: (), 3: (1, 2, 2, 2)}.get(rng.turn))
    leaf = (paths.k * paths.x).detach()  # x is 1 * leaf: both have the same gradient
    if rng.turn == 2:
        leaf = leaf + 1 / 3
    elif rng.turn:  # values that y must keep: 0, and thirds, which every smaller dtype would change
        leaf = (leaf + 1 / 3).flatten().index_fill(0, torch.tensor([0]), 0).reshape(leaf.shape)
    leaf = transposed(leaf).requires_grad_() if leaf.dim() > 1 else leaf.requires_grad_()
    strength = [float(rng.choice((2, 3, 4, 5))), 0.5, 0.0, -2][rng.turn]
    return (
        paths._replace(x=leaf, k=1.0),
        whole(rng, leaf.numel()).reshape(leaf.shape).to(leaf.dtype),
        strength,
    )


def observe(reverse_gradient: Any, case: Case) -> dict[str, Any]:
    """Run backward twice, and once from a leaf; then with two calls alive; then call for an x without gradient, in no_grad mode, and both."""
    paths, u, strength = case
    skip, x = paths.forward()
    y = reverse_gradient(x, strength)
    saw = dict.fromkeys(("x_grad", "s_grad", "x_again", "reaches_x", "asked", "one_buffer", "of_leaf")) | {
        "y": copies(y),
        "hooks": 0,
        "kept": 0,
        "gave": [],
        "beside": None,
    }
    if isinstance(y, torch.Tensor):
        saw["hooks"], gave = hooks_on(y), noted(y)
        (u * x).sum().add((paths.w * (skip + y)).sum()).backward(retain_graph=True)
        saw |= {"x_grad": copies(paths.x.grad), "s_grad": copies(paths.s.grad), "gave": gave}
        paths.x.grad = None
        (u * x).sum().add((paths.other * (skip + y)).sum()).backward(retain_graph=True)
        saw |= {"x_again": copies(paths.x.grad), "kept": hooks_on(y)}
        # Read at the end: a hook must not overwrite what an earlier pass gave out.
        reached: list[Any] = [
            torch.autograd.grad((w * y).sum(), x, retain_graph=True, allow_unused=True)[0]
            if y.requires_grad
            else None
            for w in (paths.w, paths.other)
        ]
        saw |= {"reaches_x": reached[0] is not None, "asked": copies(reached)}
        saw["one_buffer"] = saw["reaches_x"] and shares_memory(reached)

    leaf = x.detach().clone().requires_grad_()
    if isinstance(of_leaf := reverse_gradient(leaf, strength), torch.Tensor) and of_leaf.requires_grad:
        (u * leaf).sum().add((paths.w * of_leaf).sum()).backward()
        saw["of_leaf"] = copies(leaf.grad)

    def called(x: torch.Tensor, enabled: bool) -> Any:
        with torch.set_grad_enabled(enabled):
            try:
                y = reverse_gradient(x, strength)
                made = isinstance(y, torch.Tensor) and y is not x and y.grad_fn is not None
                turned_on = isinstance(y, torch.Tensor) and y.requires_grad and not x.requires_grad
                return copies(y), made and not enabled, turned_on
            except Exception as error:  # the checks decide what it means
                return f"{type(error).__name__}: {error}"[:120], False, False

    _, x = paths.forward()
    if isinstance(y, torch.Tensor):
        first, _ = reverse_gradient(x, strength), reverse_gradient(x, strength + 3)
        if first.requires_grad:
            (paths.w * first).sum().backward(retain_graph=True)
        saw["beside"] = copies(paths.x.grad)
    plain = x.detach()
    calls = [called(plain, True), called(x, False), called(plain.clone(), False)]
    return saw | dict(
        zip(("calls", "tracked", "turned_on"), map(list, zip(*calls, strict=True)), strict=True)
    )


PROBE = Probe("03.5", "reverse_gradient", make_case, observe, cases=4)
