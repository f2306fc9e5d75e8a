"""01.1 `classify(tensors)`: which tensors keep their gradient, only pass it on, or never get one."""

import random
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.observation import show
from hookedu.exercises.tools import whole
from hookedu.language import Text

_WORDS = ("keeps", "passes", "none")


def _case(rng: random.Random) -> tuple[dict[str, torch.Tensor], dict[str, str], dict[str, str]]:
    """Return (tensors, recipes, kinds), each by name.

    A recipe says how the tensor was made, a kind is one of `_WORDS`. Names and order are random and reveal nothing.
    """
    w, data = whole(rng, 2).requires_grad_(), whole(rng, 2)
    with torch.no_grad():
        quiet = 2 * w
    made = [
        ("torch.tensor([...], requires_grad=True)", w, "keeps"),
        ("torch.nn.Parameter(torch.ones(2))", torch.nn.Parameter(torch.ones(2)), "keeps"),
        ("(2 * data).requires_grad_()", (2 * data).requires_grad_(), "keeps"),
        ("2 * w", 2 * w, "passes"),
        ("w.double()", w.double(), "passes"),
        ("(w * data).sum()", (w * data).sum(), "passes"),
        ("torch.tensor([...])", data, "none"),
        ("w.detach()", w.detach(), "none"),
        ("2 * w, under torch.no_grad()", quiet, "none"),
    ]
    rng.shuffle(made)
    names = rng.sample("abcdefghkmnpqrs", len(made))
    rows = list(zip(names, made, strict=True))
    return (
        {name: tensor for name, (_, tensor, _) in rows},
        {name: recipe for name, (recipe, _, _) in rows},
        {name: kind for name, (_, _, kind) in rows},
    )


def _probe(classify: Any, rng: random.Random) -> dict[str, Any]:
    tensors, _, _ = _case(rng)
    flags = {name: tensor.requires_grad for name, tensor in tensors.items()}
    result = classify(dict(tensors))
    changed = [name for name, tensor in tensors.items() if tensor.requires_grad != flags[name]]
    return {"result": result, "changed": changed}


def _recognise(got: dict[str, Any], kinds: dict[str, str], recipes: dict[str, str]) -> str | None:
    """Return the id of the mistake behind a wrong dictionary, or None."""
    said = {word: {str(got.get(n)) for n, kind in kinds.items() if kind == word} for word in _WORDS}
    parameter = next(n for n, recipe in recipes.items() if "Parameter" in recipe)
    if got.keys() < kinds.keys():
        return "misses_some"
    if not set(map(str, got.values())) <= set(_WORDS):
        return "wrong_words"
    if (said["keeps"], said["passes"]) == ({"passes"}, {"keeps"}):
        return "swaps_two"
    if said["none"] == {"keeps"}:
        return "leaf_is_enough"
    if said["passes"] == {"keeps"}:
        return "flag_is_enough"
    if said["none"] == {"passes"}:
        return "forgets_none"
    if "keeps" not in got.values():
        return "asks_grad_now"
    return "parameters_only" if [n for n in got if got[n] == "keeps"] == [parameter] else None


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    _, recipes, kinds = _case(rng)
    got, changed = saw["result"], saw["changed"]
    if not isinstance(got, dict):
        wanted = "{" + ", ".join(f"{name!r}: ..." for name in list(kinds)[:3]) + ", …}"
        return [
            Criterion(
                "is_dict",
                passed=False,
                essential=True,
                given="kinds = classify(tensors)",
                expected=wanted,
                got=show(got).strip("<>"),
                mistake="not_a_dict",
            )
        ]
    wrong = next((name for name in kinds if got.get(name) != kinds[name]), None)
    extra = got.keys() - kinds.keys()
    shown = wrong or next(iter(kinds))
    return [
        Criterion(
            "untouched",
            not changed,
            essential=True,
            given=f"{changed[0]} = {recipes[changed[0]]}" if changed else "",
            expected=f"{changed[0]}.requires_grad == False" if changed else "",
            got=f"{changed[0]}.requires_grad == True" if changed else "",
            mistake="changes_tensors",
        ),
        Criterion(
            "right",
            wrong is None and not extra,
            points=3,
            essential=True,
            given=f"{shown} = {recipes[shown]}",
            expected=f"{shown!r}: {kinds[shown]!r}",
            got=f"{shown!r}: {show(got[shown])}" if shown in got else show(got),
            mistake=_recognise(got, kinds, recipes) if wrong else None,
        ),
    ]


CLASSIFY = Exercise(
    id="01.1",
    title=Text(zh="给张量分类", en="Classify tensors"),
    answer="classify",
    points=3,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="每个张量只问两个问题：`tensor.requires_grad` 是真是假？`tensor.is_leaf` 呢？",
            en="Ask each tensor only two questions: is `tensor.requires_grad` true or false? And `tensor.is_leaf`?",
        ),
        Text(
            zh="先问 `requires_grad`：是 `False` 就是 `'none'`，不必再问。是 `True`，再由 `is_leaf` 决定是另外两种里的哪一种。",
            en="Ask for `requires_grad` first: if it is `False`, the word is `'none'` and you are done. "
            "If it is `True`, `is_leaf` decides between the other two.",
        ),
        Text(
            zh="循环里：`if not tensor.requires_grad:` 记 `'none'`；`elif tensor.is_leaf:` 记 `'keeps'`；`else:` 记 `'passes'`。循环之后返回字典。",
            en="In the loop: `if not tensor.requires_grad:` note `'none'`; `elif tensor.is_leaf:` note `'keeps'`; "
            "`else:` note `'passes'`. Return the dictionary after the loop.",
        ),
    ),
    mistakes=(
        Mistake(
            "leaf_is_enough",
            Text(
                zh="只看 `is_leaf` 不够：不需要梯度的张量（数据、`detach()` 的结果）也算叶子，却永远没有 `.grad`。先问 `requires_grad`。",
                en="`is_leaf` alone is not enough: a tensor that needs no gradient (data, what `detach()` gives) "
                "counts as a leaf too, yet never has a `.grad`. Ask for `requires_grad` first.",
            ),
            fails="right",
        ),
        Mistake(
            "flag_is_enough",
            Text(
                zh="只看 `requires_grad` 不够：算出来的张量（比如 `2 * w`）也是 `True`，但梯度只是路过。再问 `is_leaf`。",
                en="`requires_grad` alone is not enough: a computed tensor such as `2 * w` says `True` as well, "
                "but the gradient only passes there. Ask for `is_leaf` too.",
            ),
            fails="right",
        ),
        Mistake(
            "swaps_two",
            Text(
                zh="`'keeps'` 和 `'passes'` 写反了：`is_leaf` 为 `True` 的把梯度留在 `.grad` 里，是 `'keeps'`；算出来的只让它路过，是 `'passes'`。",
                en="`'keeps'` and `'passes'` are swapped: where `is_leaf` is `True` the gradient stays in `.grad`, that is "
                "`'keeps'`; through a computed tensor it only passes, that is `'passes'`.",
            ),
            fails="right",
        ),
        Mistake(
            "forgets_none",
            Text(
                zh="有的张量既不保留、也不传递：`requires_grad` 是 `False`，梯度根本不会来。它们该是 `'none'`。",
                en="Some tensors neither keep a gradient nor pass it on: with `requires_grad` `False` none ever comes. "
                "They are `'none'`.",
            ),
            fails="right",
        ),
        Mistake(
            "asks_grad_now",
            Text(
                zh="没有一个张量被你判为 `'keeps'`。如果你看的是 `tensor.grad`：还没有做过反向传播，它处处是 `None`。该问的是 `is_leaf` 和 `requires_grad`。",
                en="By your answer no tensor is `'keeps'`. If you looked at `tensor.grad`: backward has not run yet, "
                "so it is `None` everywhere. Ask for `is_leaf` and `requires_grad`.",
            ),
            fails="right",
        ),
        Mistake(
            "parameters_only",
            Text(
                zh="不只是 `nn.Parameter`：任何 `requires_grad=True` 的叶子都会保留梯度，普通张量也一样。",
                en="Not only an `nn.Parameter`: every leaf with `requires_grad=True` keeps its gradient, a plain tensor too.",
            ),
            fails="right",
        ),
        Mistake(
            "wrong_words",
            Text(
                zh="字典的值只能是这三个词之一：`'keeps'`、`'passes'`、`'none'`。",
                en="The values of the dictionary must be one of these three words: `'keeps'`, `'passes'`, `'none'`.",
            ),
            fails="right",
        ),
        Mistake(
            "misses_some",
            Text(
                zh="有的名字不在你的字典里。是不是 `return` 写进了循环，第一轮就结束了？或者某一种情况没有记下来？",
                en="Some names are not in your dictionary. Does the `return` stand inside the loop, so that it ends in "
                "its first round? Or is there a case in which you note nothing?",
            ),
            fails="right",
        ),
        Mistake(
            "not_a_dict",
            Text(
                zh="`classify` 要返回一个字典：名字 → 词。",
                en="`classify` should return a dictionary, from names to words.",
            ),
            fails="is_dict",
        ),
        Mistake(
            "changes_tensors",
            Text(
                zh="你改动了调用者的张量：`requires_grad_()` 会就地打开这个开关。分类只看不改。",
                en="You changed your caller's tensors: `requires_grad_()` turns the flag on in place. "
                "To classify is to look, not to change.",
            ),
            fails="untouched",
        ),
    ),
    insight=Text(
        zh="两个布尔值就说清了一切：`requires_grad` 决定梯度来不来，`is_leaf` 决定来了留不留。",
        en="Two booleans tell it all: `requires_grad` decides whether a gradient comes, `is_leaf` whether it stays.",
    ),
)
