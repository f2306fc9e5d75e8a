"""Draw opening.png, with which lesson 00 begins: where a trained net looks, and what one channel is worth.

`make pictures` runs it. There are no words in it, because one picture serves both languages.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import torch

from hookedu.models.shapes import CLASSES, Shapes, load_model

LAYER, CHANNEL = "block3", 5  # switched off in the last part
SIGNS = {
    "circle": "o",
    "square": "s",
    "triangle": "^",
    "star": "*",
    "cross": "P",
    "heart": "$\u2665$",
}
BEFORE, AFTER = "0.8", "#d1495b"


def two_shapes() -> torch.Tensor:
    """Return the picture of lesson 11: a cross on the left, a triangle on the right; 1×3×64×64."""
    shapes = Shapes(60, seed=11)
    left, right = shapes[46].image, shapes[35].image
    return torch.cat([left[:, :, :32], right[:, :, 32:]], dim=2)[None]


def where(model: torch.nn.Module, x: torch.Tensor, name: str) -> torch.Tensor:
    """Return the Grad-CAM of a class before it is enlarged, 8×8."""
    seen = {}

    def keep(module, args, output):
        output.register_hook(lambda grad: seen.update(maps=output.detach(), grads=grad))

    with model.block4.register_forward_hook(keep):
        logits = model(x)
    logits[0, CLASSES.index(name)].backward()
    return (seen["grads"].mean((2, 3), keepdim=True) * seen["maps"]).sum(1)[0].relu()


def without(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Return the logits with one channel of one layer switched off."""

    def switch_off(module, args, output):
        output = output.clone()
        output[:, CHANNEL] = 0
        return output

    with model.get_submodule(LAYER).register_forward_hook(switch_off), torch.no_grad():
        return model(x)[0]


def sign(ax: plt.Axes, x: float, y: float, name: str) -> None:
    """Put the sign of a class at a place, which may lie outside the axes."""
    ax.plot(x, y, marker=SIGNS[name], markersize=17, color="black", clip_on=False)


def draw() -> plt.Figure:
    """Draw the picture, its light, and the six logits before and after."""
    model, x = load_model(), two_shapes()
    image = x[0].permute(1, 2, 0)
    figure, axes = plt.subplots(
        1, 4, figsize=(14, 3.9), width_ratios=[1, 1, 1, 1.7], layout="constrained"
    )
    for ax in axes[:3]:
        ax.imshow(image)
        ax.set(xticks=[], yticks=[], ylim=(63.5, -12))  # room for a sign above
        ax.spines[:].set_visible(False)
    for ax, name in zip(axes[1:3], ("cross", "triangle"), strict=True):
        light = torch.nn.functional.interpolate(
            where(model, x, name)[None, None], 64, mode="bilinear"
        )[0, 0]
        ax.imshow(light, cmap="inferno", alpha=0.65)
        sign(ax, 31.5, -6, name)
    ax, places = axes[3], range(len(CLASSES))
    before, after = model(x)[0].tolist(), without(model, x).tolist()
    low = min(before + after) - 1
    ax.bar([p - 0.2 for p in places], [b - low for b in before], 0.38, bottom=low, color=BEFORE)
    ax.bar([p + 0.2 for p in places], [a - low for a in after], 0.38, bottom=low, color=AFTER)
    for logits, shift in ((before, -0.2), (after, 0.2)):
        best = max(places, key=logits.__getitem__)
        ax.plot(best + shift, logits[best] + 1, "v", color="black", markersize=8)
    for place, name in enumerate(CLASSES):
        sign(ax, place, low - 2, name)
    ax.set(xticks=[], yticks=[], ylim=(low, max(before + after) + 2))
    ax.spines[["top", "left", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    draw().savefig(Path(__file__).with_suffix(".png"), dpi=100, metadata={"Software": None})
