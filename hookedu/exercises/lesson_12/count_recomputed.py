"""Exercise 12.2, `count_recomputed(model, x)`: which layers checkpointing reruns, and where it stops."""

import random
from collections import Counter
from functools import partial
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise
from hookedu.exercises.forward_hooks import CALLS_NOW
from hookedu.exercises.lesson_12.shared import says
from hookedu.exercises.observation import show
from hookedu.exercises.shared import none_left
from hookedu.exercises.tools import module_hooks
from hookedu.language import Text

_NAMES = ["fc", "act", "body", "neck", "head", "stem", "gate", "proj", "mix", "out"]
_Kinds = list[str]  # kind of each layer, a key of _LAYERS, of which the last two save nothing


def _case(rng: random.Random) -> tuple[list[str], _Kinds, int]:
    """Return (names, kinds, width): at least two layers that save tensors, then 1 to 3 that save none."""
    saving = [rng.choice(["linear", "tanh"]) for _ in range(rng.randint(2, 4))]
    idle = [rng.choice(["times 2", "flatten"]) for _ in range(rng.randint(1, 3))]
    return rng.sample(_NAMES, len(saving + idle)), [*saving, *idle], rng.randint(2, 5)


class Twice(nn.Module):
    """A layer that multiplies by 2, for which backward needs no saved tensor."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x


_LAYERS = {
    "linear": lambda width: nn.Linear(width, width),
    "tanh": lambda width: nn.Tanh(),
    "times 2": lambda width: Twice(),
    # Has a child of its own, which is not to be counted.
    "flatten": lambda width: nn.Sequential(nn.Flatten()),
}


class EndsTwice(nn.Sequential):
    """A Sequential that runs its first and its last layer twice."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self[-1](super().forward(self[0](input)))


def _model(names: list[str], kinds: _Kinds, width: int) -> nn.Sequential:
    model = EndsTwice()
    for name, kind in zip(names, kinds, strict=True):
        model.add_module(name, _LAYERS[kind](width))
    return model


def _probe(count_recomputed: Any, rng: random.Random) -> dict[str, Any]:
    names, kinds, width = _case(rng)
    model, starts = _model(names, kinds, width), Counter()

    def note(name: str, module: nn.Module, args: Any) -> None:
        starts[name] += 1

    x = torch.ones(1, width, requires_grad=True)
    for name, child in model.named_children():
        child.register_forward_pre_hook(partial(note, name))
    found = count_recomputed(model, x)
    return {
        "found": dict(found) if isinstance(found, dict) else found,
        "starts": [starts[name] for name, _ in model.named_children()],
        "backward": x.grad is not None,
        "left": module_hooks(model) - len(kinds),
    }


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    names, kinds, _ = _case(rng)
    once = dict.fromkeys(names, 1) | {names[0]: 2, names[-1]: 2}  # starts of each layer in one forward pass
    # Layers that save nothing are at the end, which recomputation does not reach.
    expected = {n: once[n] * (kind in ("linear", "tanh")) for n, kind in zip(names, kinds, strict=True)}
    found = saw["found"]
    layers = ", ".join(f"{name}: {kind}" for name, kind in zip(names, kinds, strict=True))
    return [
        Criterion(
            "counts",
            _numbers(found) and found == expected,
            points=3,
            essential=True,
            given=Text(
                zh="各层：{layers}；一次前向传播里，{first} 和 {last} 各运行 2 次",
                en="the layers: {layers}; {first} and {last} each run 2 times in one forward pass",
            ).format(layers=layers, first=names[0], last=names[-1]),
            expected=show(expected),
            got=show(found),
            mistake=_recognised(saw, once, expected),
        ),
        none_left("left", "count_recomputed(model, x)", saw["left"], "leaves_hooks"),
    ]


def _numbers(found: Any) -> bool:
    """Check whether this is a dictionary of plain numbers, which can be compared with other numbers."""
    return isinstance(found, dict) and all(type(n) in (int, float, bool) for n in found.values())


def _recognised(saw: dict[str, Any], once: dict[str, int], expected: dict[str, int]) -> str | None:
    """Return the mistake behind a wrong answer, or None."""
    found = saw["found"]
    if found is None:
        return "returns_nothing"
    if not isinstance(found, dict):
        return "returns_total" if type(found) is int else "not_a_dict"
    if not found.keys() <= expected.keys():
        return "other_names"
    if not _numbers(found):
        return None
    return _wrong_run(saw, once) or _wrong_counts(found, once, expected)


def _wrong_run(saw: dict[str, Any], once: dict[str, int]) -> str | None:
    """Return the mistake in how the answer ran the model, or None."""
    starts = saw["starts"]
    if not saw["backward"]:
        return "no_backward"
    if starts == list(once.values()):
        return "not_checkpointed"
    if starts[0] < 4:  # twice in forward and twice in recomputation
        return "in_pieces"
    if starts == [2 * n for n in once.values()] and saw["found"] == once:
        return "no_early_stop"
    return None


def _wrong_counts(found: dict[Any, Any], once: dict[str, int], expected: dict[str, int]) -> str | None:
    """Return the mistake in what the answer counted, or None."""
    recomputed = {name: n for name, n in expected.items() if n}
    stopped = list(recomputed)[-1]  # recomputation ends inside the forward of this layer
    last = list(expected)[-1]
    both = {name: once[name] + n for name, n in expected.items()}
    known = {
        "counts_first": [once],
        "counts_both": [
            both,
            {name: n - 1 for name, n in both.items()},
            {name: n // 2 for name, n in both.items()},
            both | {stopped: both[stopped] - 1},
        ],
        "only_whether": [{name: min(n, 1) for name, n in expected.items()}],
        "zeros_missing": [recomputed],
        "after_hooks": [
            expected | {stopped: 0},
            {name: n for name, n in recomputed.items() if name != stopped},
        ],
    }
    for mistake, counts in known.items():
        if found in counts:
            return mistake
    if sum(expected.values()) <= found.get(last, 0) == sum(found.values()):
        return "late_binding"
    return "off_too_early" if not any(found.values()) else None


COUNT_RECOMPUTED = Exercise(
    id="12.2",
    title=Text(zh="数一数重算", en="Count recomputation"),
    answer="count_recomputed",
    points=4,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="数的是「开始运行」：给每个直接子模块挂前向**前置**钩子。重算停在某一层的中间，那一层的前向钩子不会触发。",
            en="What counts is that a layer starts: put a forward **pre**-hook on each direct child. Recomputation stops in the middle of a layer, "
            "whose forward hook never fires.",
        ),
        Text(
            zh="`y = checkpoint(model, x, use_reentrant=False)` 之后把计数清零，再 `y.sum().backward()`，这时还挂着的钩子数到的就只有重算。",
            en="After `y = checkpoint(model, x, use_reentrant=False)` set the counts back to zero, then call `y.sum().backward()`: the hooks, still on, "
            "now count recomputation only.",
        ),
        Text(
            zh="`counts = dict.fromkeys([name for name, _ in model.named_children()], 0)`，钩子里 `counts[name] += 1`（用 `partial` 固定 `name`），"
            "清零时再赋一次 0，最后取下钩子。",
            en="`counts = dict.fromkeys([name for name, _ in model.named_children()], 0)`; in the hook `counts[name] += 1` (fix `name` with `partial`); "
            "set each to 0 again before backward; take the hooks off at the end.",
        ),
    ),
    mistakes=(
        says(
            "counts_both",
            "第一次前向传播也算进来了。`checkpoint(...)` 返回之后、`backward()` 之前，把计数清零。",
            "The first forward pass is in there as well. Set the counts to zero after `checkpoint(...)` has returned, before `backward()`.",
            fails="counts",
        ),
        says(
            "counts_first",
            "这是一整遍前向传播的次数：你在 `backward()` 之前就读了计数或取下了钩子，或者挂的是反向钩子。要数的是前向前置钩子在 `backward()` 期间的触发。",
            "Those are the starts of one whole forward pass: either you read the counts or took the hooks off before `backward()`, or you registered backward hooks. Count forward pre-hooks that fire during `backward()`.",
            fails="counts",
        ),
        says(
            "late_binding",
            "全都记到了最后一个名字下：钩子运行时才去读 `name`，那时循环早已走完。当场固定它：`partial(note, name)`（第 02 课）。",
            "All of them were filed under the last name: the hook looks `name` up when it runs, and by then the loop is over. Fix it inside the "
            "loop: `partial(note, name)` (lesson 02).",
            fails="counts",
        ),
        says(
            "other_names",
            "键只能是直接子模块的名字，即 `model.named_children()` 给出的；`named_modules()` 还包括模型自己，名字是空的。",
            "Keys must be the names of the direct children, those of `model.named_children()`; `named_modules()` also has the model itself, under an "
            "empty name.",
            fails="counts",
        ),
        says(
            "after_hooks",
            "少了一层：重算停在它的中间，它开始了，却没有运行完，所以前向钩子不触发。改用 `register_forward_pre_hook`。",
            "One layer is missing: recomputation stopped in the middle of it. It started and never ended, so its forward hook did not fire. Use "
            "`register_forward_pre_hook`.",
            fails="counts",
        ),
        says(
            "not_checkpointed",
            "只有一遍前向传播，没有重算。要写 `checkpoint(model, x, use_reentrant=False)`，而不是 `model(x)`。",
            "There was one forward pass only, and nothing was recomputed. Write `checkpoint(model, x, use_reentrant=False)` instead of `model(x)`.",
            fails="counts",
        ),
        says(
            "in_pieces",
            "`model` 自己没有在检查点里运行：你把各层一个一个（或一段一段）地跑了。它的 `forward` 可以让一层运行几遍，次序也可以不同。"
            "只套一个：`checkpoint(model, x, use_reentrant=False)`。",
            "`model` itself never ran under checkpointing: you ran its layers one by one, or in segments. Its `forward` may run a layer several times, or "
            "in another order. Use one for all: `checkpoint(model, x, use_reentrant=False)`.",
            fails="counts",
        ),
        says(
            "no_such_key",
            "字典里没有这个键。键是 `model.named_children()` 给出的名字，一开始都是 0；`counts.clear()` 会把键也删掉，清零要写 `for name in counts: counts[name] = 0`。",
            "Your dictionary has no such key. Its keys are the names from `model.named_children()`, each 0 to begin with; `counts.clear()` removes the keys as well, so "
            "set counts back with `for name in counts: counts[name] = 0`.",
            raises=r"^KeyError",
        ),
        says(
            "wrong_arguments",
            "钩子的参数个数不对：前置钩子收到 `(module, args)`，用 `partial(note, name)` 固定了名字，就写 `def note(name, module, args)`。",
            "Your hook takes the wrong number of arguments: a pre-hook gets `(module, args)`; with the name fixed by `partial(note, name)` write "
            "`def note(name, module, args)`.",
            raises=r"\w+\(\) (missing \d+ required positional argument|takes (from \d+ to )?\d+ positional arguments? but \d+ (was|were) given)",
        ),
        says(
            "not_a_sum",
            "`backward()` 只能从一个数开始：先把输出加起来，`y.sum().backward()`。",
            "`backward()` starts from a single number: add up the output first, `y.sum().backward()`.",
            raises=r"grad can be implicitly created only for scalar outputs",
        ),
        says(
            "no_early_stop",
            "全部重算了一遍，没有提前停下：`use_reentrant=True` 是旧做法（不写也是它），`early_stop=False` 关掉了提前停止。用 `use_reentrant=False`。",
            "All layers ran again, nothing stopped early: `use_reentrant=True` is the old way (also what you get without either), and `early_stop=False` switches stopping off. Use "
            "`use_reentrant=False`.",
            fails="counts",
        ),
        says(
            "no_backward",
            "`x.grad` 还是 `None`：重算发生在反向传播里，要调用 `y.sum().backward()`。",
            "`x.grad` is still `None`: recomputation happens during backward, so call `y.sum().backward()`.",
            fails="counts",
        ),
        says(
            "off_too_early",
            "重算发生了，你的钩子却已经取下：反向传播之后再取。",
            "Layers were recomputed, but your hooks were off by then: take them off after backward.",
            fails="counts",
        ),
        says(
            "zeros_missing",
            "没有重算的层也要在字典里，值为 0。",
            "Layers that were not recomputed belong in the dictionary as well, with a 0.",
            fails="counts",
        ),
        says(
            "returns_nothing",
            "`count_recomputed` 返回了 `None`：最后要 `return counts`。",
            "`count_recomputed` returned `None`: end with `return counts`.",
            fails="counts",
        ),
        says(
            "only_whether",
            "你记下的是有没有开始过。同一层一次前向传播可以运行几遍，每一遍都要数：`counts[name] += 1`。",
            "You noted whether a layer started. The same layer may run several times in one forward pass, and each one counts: `counts[name] += 1`.",
            fails="counts",
        ),
        says(
            "not_a_dict",
            '要返回字典，从子模块的名字到次数，例如 `{"fc": 1, "flat": 0}`。',
            'Return a dict from the children\'s names to how often each started, such as `{"fc": 1, "flat": 0}`.',
            fails="counts",
        ),
        says(
            "returns_total",
            "这是一个数。要按层的名字分开数。",
            "That is one number. Count each layer under its name.",
            fails="counts",
        ),
        says(
            "leaves_hooks",
            "数对了，钩子却没有取下。反向传播之后 `handle.remove()`，或者用 `with`。",
            "The counts are right, but the hooks stayed on. Call `handle.remove()` after backward, or use a `with`.",
            fails="left",
        ),
        CALLS_NOW,
    ),
    insight=Text(
        zh="最后一个要存东西的层一存完，重算就停：后面的层对反向传播没有用处。",
        en="Recomputation stops as soon as the last tensor that backward needs is there: later layers are of no use to it.",
    ),
)
