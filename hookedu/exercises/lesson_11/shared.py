"""A net without square maps, its true gradients, and mistakes shared by exercises of lesson 11."""

import random
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from hookedu.exercises.exercise import Mistake
from hookedu.exercises.tools import close
from hookedu.language import Text

Pick = Callable[[torch.Tensor], torch.Tensor]  # logits -> the scalar that backward starts from


@dataclass(frozen=True)
class Case:
    """A small net of random weights, pictures, and for each picture a class other than the likeliest one.

    The head sees every position of the last maps, so gradients differ between positions: a missing average shows,
    which it would not before a global average pool.
    """

    model: nn.Sequential
    images: torch.Tensor
    labels: torch.Tensor

    def truth(self, layer: str, pick: Pick | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (maps, grads) of a layer's output, both (N, C, h, w); `pick` replaces the labels' logits."""
        kept: list[torch.Tensor] = []
        module = self.model.get_submodule(layer)

        def keep(module: nn.Module, args: Any, output: torch.Tensor) -> None:
            kept.append(output)

        with module.register_forward_hook(keep):
            logits = self.model(self.images)
        score = (pick or self.score)(logits)
        return kept[0].detach(), torch.autograd.grad(score, kept[0])[0]

    def score(self, logits: torch.Tensor) -> torch.Tensor:
        """Return the sum of the labels' logits: each picture's maps affect its own logit alone."""
        return logits.gather(1, self.labels[:, None]).sum()

    def other_classes(self) -> dict[str, list[Pick]]:
        """Return what learners backpropagate in place of the labels' logits: mistake id -> its forms."""
        labels, rows = self.labels, range(len(self.labels))
        return {
            "wrong_class": [lambda logits: logits.amax(dim=1).sum()],
            "one_class": [lambda logits, k=k: logits[:, k].sum() for k in range(4)],
            "one_picture": [lambda logits: logits.max()]
            + [lambda logits, i=i: logits[i, labels[i]] for i in rows],
            "probabilities": [lambda logits: self.score(logits.softmax(dim=1))],
            "uses_loss": [
                lambda logits, how=how: F.cross_entropy(logits, labels, reduction=how)
                for how in ("mean", "sum")
            ],
            "all_classes": [lambda logits: logits.sum(), lambda logits: logits.mean()],
            "crossed": [lambda logits: logits[:, labels].sum(), lambda logits: logits[:, labels].mean()],
            "mean_of_pictures": [lambda logits: self.score(logits) / len(labels)],
        }

    def given(self, layer: str) -> str:
        """Describe the input, for a message."""
        shape = "×".join(map(str, self.images.shape))
        return f"layer = model.{layer}; images: {shape}; labels = {self.labels.tolist()}"

    def first(self) -> "Case":
        """Return the case with its first picture alone, on which `squeeze()` removes too many dimensions."""
        return Case(self.model, self.images[:1], self.labels[:1])


def make_case(rng: random.Random, pictures: int = 2) -> Case:
    """Return a case whose labels differ and whose weighted sums at `relu2` have both signs before the ReLU."""
    model = nn.Sequential(
        OrderedDict(
            conv1=nn.Conv2d(2, 3, 3, padding=1),
            relu1=nn.ReLU(),
            pool=nn.MaxPool2d(2),
            conv2=nn.Conv2d(3, 4, 3, padding=1),
            relu2=nn.ReLU(),
            flat=nn.Flatten(),
            head=nn.Linear(4 * 3 * 4, 4),
        )
    )
    generator = torch.Generator().manual_seed(rng.getrandbits(32))
    while True:
        images = torch.randn(pictures, 2, 6, 8, generator=generator)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.normal_(generator=generator)
            # Logits near 1: through a softmax, large ones would get no gradient.
            model.get_parameter("head.weight").div_(model(images).std())
            # Centred, so that the likeliest classes of the pictures differ.
            model.get_parameter("head.bias").sub_(model(images).mean(dim=0))
            likeliest = model(images).argmax(dim=1).tolist()
        labels = [rng.choice([k for k in range(4) if k != best]) for best in likeliest]
        case = Case(model, images, torch.tensor(labels))
        if len(set(likeliest)) > 1 and len(set(labels)) > 1 and _is_mixed(*case.truth("relu2")):
            return case


def _is_mixed(maps: torch.Tensor, grads: torch.Tensor) -> bool:
    """Check whether the weighted sum of each picture goes well above 0 and well below."""
    raw = (grads.mean(dim=(2, 3), keepdim=True) * maps).sum(dim=1).flatten(1)
    high, low = raw.amax(dim=1), raw.amin(dim=1)
    return bool((torch.minimum(high, -low) > 0.1 * torch.maximum(high, -low)).all())


def recognise(got: Any, likely: dict[str, list[torch.Tensor]]) -> str | None:
    """Return the mistake that gives the values of `got`, or None."""
    return next((name for name, values in likely.items() if any(close(got, v) for v in values)), None)


def first_wrong(got: Any, expected: torch.Tensor) -> int:
    """Return the index of the first picture whose result is wrong: that of others may be right."""
    if not isinstance(got, torch.Tensor) or got.shape != expected.shape:
        return 0
    return next((i for i in range(len(got)) if not close(got[i], expected[i])), 0)


def says(criterion: str, id: str, zh: str, en: str) -> Mistake:
    """Return a mistake that the judge recognises when the given criterion fails."""
    return Mistake(id, Text(zh=zh, en=en), fails=criterion)


def class_mistakes(criterion: str) -> tuple[Mistake, ...]:
    """Return the mistakes of `Case.other_classes`, for the given criterion."""
    return (
        says(
            criterion,
            "wrong_class",
            "你用的是网络自己最看好的类（`argmax` 或 `max`）。要解释的是 `labels` 里的类：第 `i` 张图取 `logits[i, labels[i]]`。",
            "You took the class that the net itself likes best (`argmax` or `max`). Explain the one in `labels`: "
            "`logits[i, labels[i]]` of picture `i`.",
        ),
        says(
            criterion,
            "one_class",
            "所有图都用了同一个类。每张图有自己的类：`logits.gather(1, labels[:, None])` 各取各的。",
            "You took the same class for every picture. Each has its own: `logits.gather(1, labels[:, None])` picks them.",
        ),
        says(
            criterion,
            "one_picture",
            "只有一张图有梯度：你只对一个 logit 做了反向传播。先把每张图的那个 logit 加起来：各图互不影响，和的梯度就是各自的梯度。",
            "Only one picture got a gradient: you ran backward from a single logit. Add up one logit of each picture: "
            "pictures do not touch each other, so each gets its own gradient.",
        ),
        says(
            criterion,
            "probabilities",
            "你用的是 `softmax` 之后的概率。它的梯度混进了别的类，概率接近 1 时又几乎为零。请用 logit。",
            "You took the probability after `softmax`. Its gradient mixes in the other classes, and fades where the "
            "probability is near 1. Take the logit.",
        ),
        says(
            criterion,
            "uses_loss",
            "你对损失做了反向传播：损失变小才是这个类变强，符号反了，还混进了别的类。请用 logit。",
            "You ran backward from the loss: it falls where the class gains, so the sign is wrong, and the other classes "
            "are mixed in. Take the logit.",
        ),
        says(
            criterion,
            "all_classes",
            "你把所有类的 logit 都加进去了。每张图只取 `labels` 里的那一个。",
            "You added up the logits of all classes. Take one of each picture: the one in `labels`.",
        ),
        says(
            criterion,
            "crossed",
            "`logits[:, labels]` 是 `N×N`：每张图都取了**所有图**的类。要逐图各取一个：`logits.gather(1, labels[:, None])`，"
            "或者 `logits[torch.arange(len(labels)), labels]`。",
            "`logits[:, labels]` is `N×N`: from each picture it takes the classes of **all** pictures. Take one of each: "
            "`logits.gather(1, labels[:, None])`, or `logits[torch.arange(len(labels)), labels]`.",
        ),
        says(
            criterion,
            "mean_of_pictures",
            "差一个倍数 `N`：你对各图的 logit 取了平均，每张图的梯度就被图的张数除了一次。要加起来：`.sum()`。",
            "You are off by the factor `N`: you averaged the pictures' logits, which divides each gradient by the number of "
            "pictures. Add them up: `.sum()`.",
        ),
    )


NEEDS_SCALAR = Mistake(
    "needs_scalar",
    Text(
        zh="`backward()` 要从一个数出发。每张图各取一个 logit，再 `.sum()`。",
        en="`backward()` starts from one number. Take one logit of each picture, then `.sum()`.",
    ),
    raises=r"grad can be implicitly created only for scalar outputs",
)
NEEDS_INDEX = Mistake(
    "needs_index",
    Text(
        zh="`gather` 的下标要和 `logits` 一样有两维：`labels[:, None]` 把 `N` 个数变成 `N×1`。",
        en="`gather` wants an index of two dimensions, as `logits` has: `labels[:, None]` makes `N×1` of `N` numbers.",
    ),
    raises=r"Index tensor must have the same number of dimensions as input tensor",
)
NO_GRAPH = Mistake(
    "no_graph",
    Text(
        zh="没有计算图，也就没有梯度：去掉 `torch.no_grad()`；`detach()` 只用在留下来的特征图上，不要用在挂钩子的 `output` 上。",
        en="Without a graph there is no gradient: leave out `torch.no_grad()`, and `detach()` only what you keep, "
        "not the `output` that the hook is put on.",
    ),
    raises=r"does not require grad|doesn't require gradient",
)
LEAVES_HOOK = Mistake(
    "leaves_hook",
    Text(
        zh="数都对，可是钩子还挂在模型上：用 `with layer.register_forward_hook(keep):`，出了块就取下来了。",
        en="The numbers are right, but your hook is still on the model: with `with layer.register_forward_hook(keep):` "
        "it comes off at the end of the block.",
    ),
    fails="left",
)
NO_BACKWARD = Mistake(
    "no_backward",
    Text(
        zh="要读的东西还不在那里：梯度的钩子没有运行过（忘了 `backward()`，或者在它之前就读了），或者存和取用了两个名字。",
        en="What you read is not there yet: the hook for the gradient never ran (`backward()` is missing, or comes after you read), "
        "or you store under one name and read under another.",
    ),
    raises=r"^KeyError: |IndexError: list index out of range|'NoneType' object (?:has no attribute|is not subscriptable)",
)
REPLACES_OUTPUT = Mistake(
    "replaces_output",
    Text(
        zh="你的前向钩子返回了元组或句柄，它取代了输出，下一层就出错了。`lambda` 的值就是返回值："
        "`lambda module, args, output: output.register_hook(...)` 返回句柄。用 `def` 写，不写 `return`。",
        en="Your forward hook returned a tuple or a handle. It replaced the output, and the next layer failed. The value of a "
        "`lambda` is what it returns: `lambda module, args, output: output.register_hook(...)` returns a handle. "
        "Write a `def` without `return`.",
    ),
    raises=r"must be Tensor, not \w+|'(?:tuple|list|RemovableHandle)' object has no attribute",
)

# Mistakes on the way to the gradient of a layer's output, whatever is then computed from it.
GRADIENT_MISTAKES = (NEEDS_INDEX, NEEDS_SCALAR, NO_GRAPH, NO_BACKWARD, REPLACES_OUTPUT, LEAVES_HOOK)
