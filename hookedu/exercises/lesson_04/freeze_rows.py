"""04.3 `freeze_rows(embedding, rows)`: set the gradient of some rows of an embedding to zero."""

import random
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_04.shared import remove_handles
from hookedu.exercises.observation import show
from hookedu.exercises.probing import hooks_on
from hookedu.exercises.shared import HANDLE, MISREGISTERED
from hookedu.exercises.tools import copies, same, whole
from hookedu.language import Text

_N_ROWS, _WIDTH = 6, 7  # more columns than rows, so that every row index is a valid column index


def _rows(rng: random.Random) -> list[int]:
    """Return three unsorted rows with others in between, and rows[0] < rows[-1]: no range of rows fits."""
    a, b, c = rng.choice([(0, 2, 4), (1, 3, 5)])
    return rng.choice([[b, a, c], [a, c, b]])


def _case(rng: random.Random) -> tuple[torch.nn.Embedding, list[int], torch.Tensor]:
    """Return (embedding, rows to freeze, c): the gradient of (c * embedding(all rows)).sum() is c."""
    embedding = torch.nn.Embedding(_N_ROWS, _WIDTH)
    embedding.weight.data = torch.stack([whole(rng, _WIDTH) for _ in range(_N_ROWS)])
    return (
        embedding,
        _rows(rng),
        torch.stack([whole(rng, _WIDTH) for _ in range(_N_ROWS)]),
    )


def _frozen(c: torch.Tensor, rows: list[int]) -> torch.Tensor:
    expected = c.clone()
    expected[rows] = 0
    return expected


def _probe(freeze_rows: Any, rng: random.Random) -> dict[str, Any]:
    embedding, rows, c = _case(rng)
    everything = torch.arange(_N_ROWS)
    adapter = torch.nn.Parameter(torch.zeros_like(c))
    handle = freeze_rows(embedding, list(rows))
    weight = embedding.weight
    report: dict[str, Any] = {
        "handle": handle,
        "weight": copies(weight),
        "requires_grad": weight.requires_grad,
        "hooks": hooks_on(weight) + len(weight._post_accumulate_grad_hooks or ()),
    }
    if not weight.requires_grad:
        return report
    (c * embedding(everything)).sum().backward()
    report["grad"] = copies(weight.grad)
    (asked,) = torch.autograd.grad((c * embedding(everything)).sum(), weight)
    report["asked"] = copies(asked)
    # An adapter is added to the weight: the addition passes the same gradient tensor to both.
    (c.clone() * (weight + adapter)).sum().backward()
    report["adapter_grad"] = copies(adapter.grad)
    remove_handles(handle)
    weight.grad = None
    (c * embedding(everything)).sum().backward()
    return report | {"grad_after": copies(weight.grad)}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    embedding, rows, c = _case(rng)
    expected = _frozen(c, rows)
    call = f"rows = {rows}; freeze_rows(embedding, rows)"
    given = call + "; loss.backward()"
    unchanged = Criterion(
        "unchanged",
        same(saw["weight"], embedding.weight.detach()),
        essential=True,
        given=call,
        expected=Text(zh="`embedding.weight` 不变", en="`embedding.weight` is as before"),
        got=Text(zh="它被改动了", en="it was changed"),
        mistake="zeroes_the_weight",
    )
    if saw["requires_grad"] is not True:
        return [
            unchanged,
            Criterion(
                "freezes",
                passed=False,
                essential=True,
                given=call,
                expected="embedding.weight.requires_grad == True",
                got="embedding.weight.requires_grad == False",
                mistake="freezes_everything",
            ),
        ]
    grad = saw["grad"]
    columns = c.clone()
    columns[:, rows] = 0
    if same(grad, c):
        mistake = "forgot_return" if saw["hooks"] else "hooks_another_tensor"
    elif same(grad, c - expected):
        mistake = "freezes_the_others"
    elif same(grad, columns):
        mistake = "zeroes_columns"
    elif same(grad, _frozen(c, rows[-1:])):
        mistake = "late_binding"
    elif _is_slice(grad, c, rows):
        mistake = "freezes_a_slice"
    else:
        mistake = "zeroes_everything" if same(grad, torch.zeros_like(c)) else None
    return [
        unchanged,
        _gradient(
            "freezes",
            points=2,
            essential=True,
            given=given,
            what="embedding.weight.grad",
            got=grad,
            expected=expected,
            rows=rows,
            mistake=mistake,
        ),
        _gradient(
            "under_autograd_grad",
            points=1,
            given=f"{call}; torch.autograd.grad(loss, embedding.weight)",
            what="grad",
            got=saw["asked"],
            expected=expected,
            rows=rows,
            mistake="post_accumulate",
        ),
        _gradient(
            "others",
            points=1,
            given=f"{call}; (c * (embedding.weight + adapter)).sum().backward()",
            what="adapter.grad",
            got=saw["adapter_grad"],
            expected=c,
            rows=rows,
            mistake="changes_in_place",
        ),
        Criterion(
            "handle",
            saw["handle"] == HANDLE and same(saw["grad_after"], c),
            points=1,
            given="handle = freeze_rows(embedding, rows)",
            expected=Text(
                zh="一个句柄；`remove()` 之后梯度一切如初",
                en="a handle; after `remove()` the gradient is as before",
            ),
            got=Text(zh="`remove()` 之后还有行被冻结", en="after `remove()` some rows are still frozen")
            if saw["handle"] == HANDLE
            else show(saw["handle"]).strip("<>"),
            mistake="hooks_stay" if saw["handle"] == HANDLE else "no_handle",
        ),
    ]


def _same_row(got: Any, expected: torch.Tensor, row: int) -> bool:
    return isinstance(got, torch.Tensor) and got.shape == expected.shape and same(got[row], expected[row])


def _is_slice(grad: Any, c: torch.Tensor, rows: list[int]) -> bool:
    """Check whether a slice became zero: first to last or lowest to highest row, inclusive or exclusive."""
    return any(
        same(grad, _frozen(c, list(range(*ends))))
        for ends in (
            (rows[0], rows[-1] + 1),
            (min(rows), max(rows) + 1),
            (rows[0], rows[-1]),
            (min(rows), max(rows)),
        )
    )


def _gradient(
    id: str,
    *,
    points: int,
    essential: bool = False,
    given: str,
    what: str,
    got: Any,
    expected: torch.Tensor,
    rows: list[int],
    mistake: str | None,
) -> Criterion:
    """Require an expected gradient; the message shows its first wrong row, or the first of `rows`."""
    row = next((r for r in range(_N_ROWS) if not _same_row(got, expected, r)), rows[0])
    shown = got[row] if isinstance(got, torch.Tensor) and got.shape == expected.shape else got
    return Criterion(
        id,
        same(got, expected),
        points=points,
        essential=essential,
        given=given,
        expected=f"{what}[{row}] == {show(expected[row])}",
        got=f"{what}[{row}] == {show(shown)}",
        mistake=mistake,
    )


FREEZE_ROWS = Exercise(
    id="04.3",
    title=Text(zh="冻结嵌入的几行", en="Freeze rows of an embedding"),
    answer="freeze_rows",
    points=5,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="要改梯度，而且 `torch.autograd.grad` 也要改到：在 4.9 节的表里，哪种钩子两条都做得到？",
            en="It has to change the gradient, under `torch.autograd.grad` as well: which hook in the table of 4.9 can do both?",
        ),
        Text(
            zh="在 `embedding.weight` 上挂张量钩子。里面先 `clone()`，再把那几行设成零，最后把新的梯度返回。",
            en="Attach a tensor hook to `embedding.weight`. In it, first `clone()`, then set those rows to zero, then return the new gradient.",
        ),
        Text(
            zh="`def freeze(grad):`，里面 `grad = grad.clone()`、`grad[rows] = 0`、`return grad`；最后 `return embedding.weight.register_hook(freeze)`。",
            en="`def freeze(grad):`, in it `grad = grad.clone()`, `grad[rows] = 0`, `return grad`; "
            "last, `return embedding.weight.register_hook(freeze)`.",
        ),
    ),
    mistakes=(
        Mistake(
            "forgot_return",
            Text(
                zh="钩子运行了，梯度却原样通过：改好的那个梯度要 `return` 出来，不返回就等于没改。",
                en="The hook ran, yet the gradient passed as it came: the changed one has to be handed back with "
                "`return`, or nothing changes.",
            ),
            fails="freezes",
        ),
        Mistake(
            "hooks_another_tensor",
            Text(
                zh="`embedding.weight` 上没有钩子。要挂在它本身上：`embedding.weight[rows]` 每次都是一个新张量，损失不经过它，挂在那里不会触发。",
                en="`embedding.weight` itself carries no hook, and there it belongs: `embedding.weight[rows]` is a new "
                "tensor each time, the loss never passes there, and a hook on it does not fire.",
            ),
            fails="freezes",
        ),
        Mistake(
            "freezes_the_others",
            Text(
                zh="正好反了：`rows` 里的行还在学，其余的倒被冻结了。",
                en="The wrong way round: the rows in `rows` still learn, and all others are frozen.",
            ),
            fails="freezes",
        ),
        Mistake(
            "zeroes_columns",
            Text(
                zh="变成零的是列。行在前，列在后：`grad[rows] = 0`。",
                en="What became zero are columns. Rows come first, columns second: `grad[rows] = 0`.",
            ),
            fails="freezes",
        ),
        Mistake(
            "freezes_a_slice",
            Text(
                zh="切片 `grad[first:last + 1]` 连中间的行也带上了。`rows` 里的行不相邻，也没有排好序：`grad[rows] = 0`。",
                en="A slice like `grad[first:last + 1]` takes the rows between along. Those in `rows` are neither "
                "neighbours nor sorted: `grad[rows] = 0`.",
            ),
            fails="freezes",
        ),
        Mistake(
            "late_binding",
            Text(
                zh="只有 `rows` 的最后一行被冻结了：钩子等到反向传播时才去读循环变量，那时循环早已走完（第 02 课的 F9）。"
                "不用循环：一个钩子，`grad[rows] = 0`。",
                en="Only the last row of `rows` is frozen: the hooks look the loop's variable up when they run, and by "
                "then the loop is over (F9 of lesson 02). No loop is needed: one hook, `grad[rows] = 0`.",
            ),
            fails="freezes",
        ),
        Mistake(
            "zeroes_everything",
            Text(
                zh="整个梯度都成了零，没有一行能学了。只动 `rows` 里的那几行。",
                en="The whole gradient is zero, and no row can learn. Touch only the rows in `rows`.",
            ),
            fails="freezes",
        ),
        Mistake(
            "freezes_everything",
            Text(
                zh="`requires_grad` 只能管整个张量：设成 `False`，所有的行都不学了。要冻结几行，得靠钩子改梯度。",
                en="`requires_grad` holds for a tensor as a whole: set to `False`, no row learns any more. "
                "To freeze a few rows, let a hook change the gradient.",
            ),
            fails="freezes",
        ),
        Mistake(
            "requires_grad_on_rows",
            Text(
                zh="`requires_grad` 不能按行设置：`embedding.weight[rows]` 不是叶子。要冻结几行，得靠钩子改梯度。",
                en="`requires_grad` cannot be set by row: `embedding.weight[rows]` is no leaf. "
                "To freeze a few rows, let a hook change the gradient.",
            ),
            raises=r"you can only change requires_grad flags of leaf variables",
        ),
        Mistake(
            "zeroes_the_weight",
            Text(
                zh="你把嵌入里的数本身改掉了。冻结是让这几行**保持原样**：要变成零的是它们的梯度。",
                en="You changed the numbers of the embedding itself. To freeze rows is to **leave them as they are**: "
                "it is their gradient that should be zero.",
            ),
            fails="unchanged",
        ),
        Mistake(
            "hooks_the_module",
            Text(
                zh="`register_hook` 是张量的方法，`embedding` 是模块。它的权重才是张量：`embedding.weight`。",
                en="`register_hook` belongs to tensors, and `embedding` is a module. Its weight is a tensor: `embedding.weight`.",
            ),
            raises=r"has no attribute 'register_hook'",
        ),
        Mistake(
            "asks_too_early",
            Text(
                zh="`freeze_rows` 运行时还没有反向传播，`embedding.weight.grad` 是 `None`。要留下一个钩子等它。",
                en="While `freeze_rows` runs there has been no backward, and `embedding.weight.grad` is `None`. "
                "Leave a hook behind that waits for it.",
            ),
            raises=r"'NoneType' object does not support item assignment|'NoneType' object is not subscriptable",
        ),
        Mistake(
            "post_accumulate",
            Text(
                zh="`backward()` 之后是对的，`torch.autograd.grad` 得到的却是没改过的梯度：它不写 `.grad`，"
                "post-accumulate 钩子就不触发（F3）。",
                en="Correct after `backward()`, but `torch.autograd.grad` got the unchanged gradient: it writes no "
                "`.grad`, so a post-accumulate hook stays silent (F3).",
            ),
            fails="under_autograd_grad",
        ),
        Mistake(
            "changes_in_place",
            Text(
                zh="`embedding.weight + adapter` 把同一个梯度交给了两边，你就地把它改了，`adapter` 的那几行也变成了零（第 03 课的 F1）。先 `clone()`，再返回。",
                en="`embedding.weight + adapter` hands one gradient to both, and you changed it in place: those rows of "
                "`adapter` became zero as well (F1 of lesson 03). `clone()` first, then return.",
            ),
            fails="others",
        ),
        *MISREGISTERED,
        Mistake(
            "hooks_stay",
            Text(
                zh="`handle.remove()` 之后还有钩子留着：只挂一个。",
                en="After `handle.remove()` some hooks stay: attach only one.",
            ),
            fails="handle",
        ),
        Mistake(
            "no_handle",
            Text(
                zh="没有把句柄返回：少了它，这几行就再也解冻不了。",
                en="The handle was not returned: without it these rows can never be set free again.",
            ),
            fails="handle",
        ),
    ),
    insight=Text(
        zh="张量钩子在梯度写进 `.grad` 之前换掉了它，所以 `backward()` 和 `torch.autograd.grad` 看到的都是换过的。",
        en="The tensor hook replaced the gradient before it was written to `.grad`, so `backward()` and "
        "`torch.autograd.grad` both get the new one.",
    ),
)
