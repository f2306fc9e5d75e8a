"""03.4 `tame(branch)`: find what two hooks change in place, and fix both."""

import random
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_03.shared import OTHER_SHAPE, READS_DOT_GRAD, RETURNS_NO_TENSOR, Paths
from hookedu.exercises.observation import show
from hookedu.exercises.probing import hooks_on, remove_handle
from hookedu.exercises.shared import HANDLE, MISREGISTERED, NO_HANDLE
from hookedu.exercises.tools import copies, same
from hookedu.language import Text


def _case(rng: random.Random) -> tuple[Paths, torch.Tensor]:
    """Return (paths, w): the gradient w has two positive and two negative numbers."""
    signs = [1.0, 1.0, -1.0, -1.0]
    rng.shuffle(signs)
    size = torch.tensor([float(v) for v in rng.sample(range(2, 10), 4)])
    return Paths.make(rng, 4), size * torch.tensor(signs)


def _given(paths: Paths, w: torch.Tensor) -> str:
    return f"skip = 2 * s; branch = {paths.k:g} * x; loss = ({show(w)} * (skip + branch)).sum()"


def _probe(tame: Any, rng: random.Random) -> dict[str, Any]:
    paths, w = _case(rng)

    def run(*taken_off: int) -> dict[str, Any]:
        skip, branch = paths.run()
        handles = tame(branch)
        hooks = hooks_on(branch)
        if isinstance(handles, (list, tuple)):
            for place in taken_off:
                if place < len(handles):
                    remove_handle(handles[place])
        (w * (skip + branch)).sum().backward()
        return {
            "handles": handles,
            "hooks": hooks,
            "x_grad": copies(paths.x.grad),
            "s_grad": copies(paths.s.grad),
        }

    return {"both": run(), "second_alone": run(0), "first_alone": run(1), "none": run(0, 1)}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    paths, w = _case(rng)
    k, given, both = paths.k, _given(paths, w) + "; loss.backward()", saw["both"]
    positive, skip = w.clamp(min=0), 2 * w
    tamed, got = k * positive / 2, both["x_grad"]
    handles = both["handles"]
    handed = isinstance(handles, list) and handles == [HANDLE] * 2
    one = handles == HANDLE or (isinstance(handles, list) and handles == [HANDLE])
    removable = handed and same(saw["none"]["x_grad"], k * w) and same(saw["none"]["s_grad"], skip)

    looks = {  # mistake: the x.grad that it leaves
        "forgot_return": k * w,
        "halve_missing": k * positive,
        "positive_missing": k * w / 2,
        "wrong_half": k * w.clamp(max=0) / 2,
        "doubled": k * positive * 2,
        "absolute": k * w.abs() / 2,
    }
    mistake = next((name for name, value in looks.items() if same(got, value)), None)
    if mistake == "forgot_return" and not both["hooks"]:
        mistake = "not_registered"
    spoilt = {
        "mask_in_place": 2 * positive,
        "halve_in_place": w,
        "both_in_place": positive,
    }
    culprit = next((name for name, value in spoilt.items() if same(both["s_grad"], value)), None)
    alone = [saw[name]["s_grad"] for name in ("first_alone", "second_alone")]
    first_right = same(saw["first_alone"]["x_grad"], k * positive)
    second_right = same(saw["second_alone"]["x_grad"], k * w / 2)
    safe = all(same(s_grad, skip) for s_grad in alone)
    if safe:
        expected = f"x.grad == {show(k * positive)} · x.grad == {show(k * w / 2)}"
        alone_got = " · ".join(
            f"x.grad == {show(saw[name]['x_grad'])}" for name in ("first_alone", "second_alone")
        )
    else:
        expected = f"s.grad == {show(skip)}"
        alone_got = " · ".join(f"s.grad == {show(s_grad)}" for s_grad in alone)
    return [
        Criterion(
            "branch",
            same(got, tamed),
            essential=True,
            given=given,
            expected=f"x.grad == {show(tamed)}",
            got=f"x.grad == {show(got)}",
            mistake=mistake,
        ),
        Criterion(
            "skip",
            same(both["s_grad"], skip),
            points=2,
            essential=True,
            given=given,
            expected=f"s.grad == {show(skip)}",
            got=f"s.grad == {show(both['s_grad'])}",
            mistake=culprit,
        ),
        Criterion(
            "handle",
            removable,
            points=1,
            given="handles = tame(branch)",
            expected=Text(zh="2 个句柄的列表", en="a list of 2 handles"),
            got=show(handles).replace("<", "").replace(">", ""),
            mistake="merged" if one else None if handed else "no_handle",
        ),
        Criterion(
            "alone",
            removable and safe and first_right and second_right,
            points=1,
            given=Text(
                zh="再来 2 次：每次只留下 1 个钩子，先是第一个",
                en="2 more runs, each with only 1 of the hooks left on, first the first",
            ),
            expected=expected,
            got=alone_got,
            mistake="other_job" if safe else "saved_by_luck",
        ),
    ]


TAME = Exercise(
    id="03.4",
    title=Text(zh="找出并修好就地修改", en="Find and mend the in-place change"),
    answer="tame",
    points=4,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="注释里的每一行都在改 `grad` 本身：`grad[...] = 0` 和 `grad /= 2`。怎样算出同样的结果，却不碰它？",
            en="Each of the commented lines changes `grad` itself: `grad[...] = 0` and `grad /= 2`. "
            "How do you get the same result without touching it?",
        ),
        Text(
            zh="没有下划线的 `clamp` 会返回一个新张量，`/` 也是。",
            en="`clamp` without an underscore returns a new tensor, and so does `/`.",
        ),
        Text(
            zh="第一个钩子：`return grad.clamp(min=0)`；第二个：`return grad / 2`。",
            en="In the first hook `return grad.clamp(min=0)`, in the second `return grad / 2`.",
        ),
    ),
    mistakes=(
        Mistake(
            "both_in_place",
            Text(
                zh="支路的梯度对了，`s` 的却还是坏的：两个钩子都仍在就地修改。`detach()` 不是拷贝，修改之后才 `clone()` 也太晚了。请返回新张量。",
                en="The branch's gradient is right, but that of `s` is still spoilt: both hooks go on changing it in place. "
                "`detach()` is no copy, and `clone()` after the change comes too late. Return new tensors.",
            ),
            fails="skip",
        ),
        Mistake(
            "mask_in_place",
            Text(
                zh="`s` 的负数也成了 0：第一个钩子仍在就地修改。`detach()` 不是拷贝，修改之后才 `clone()` 也太晚了。试试 `grad.clamp(min=0)`。",
                en="The negatives of `s` became 0 as well: the first hook still works in place. `detach()` is no copy, and "
                "`clone()` after the change comes too late. Try `grad.clamp(min=0)`.",
            ),
            fails="skip",
        ),
        Mistake(
            "halve_in_place",
            Text(
                zh="`s` 的梯度只剩一半：减半的那个钩子先运行，而且仍在就地修改。`grad /= 2` 改的是原来的张量，`grad / 2` 才是新的。",
                en="Only half of the gradient of `s` is left: the hook that halves runs first here and still works in place. "
                "`grad /= 2` changes the old tensor, `grad / 2` is a new one.",
            ),
            fails="skip",
        ),
        Mistake(
            "saved_by_luck",
            Text(
                zh="两个钩子一起时结果正确，单独留下其中一个，`s` 的梯度就坏了：它仍在就地修改，只是另一个钩子恰好先交给它一个新张量。每个钩子都要自己站得住。",
                en="Together they are right; left alone, one of them spoils the gradient of `s`. It still works in place, and "
                "was saved because the other hook happened to hand it a new tensor. Each hook must be safe by itself.",
            ),
            fails="alone",
        ),
        Mistake(
            "forgot_return",
            Text(
                zh="支路的梯度一点没变：新张量算出来了，却没有 `return`。",
                en="The branch's gradient did not change at all: the new tensors were computed, but there is no `return`.",
            ),
            fails="branch",
        ),
        Mistake(
            "halve_missing",
            Text(
                zh="负数去掉了，却没有减半：第二个钩子没有返回 `grad / 2`，或者没有挂上。",
                en="The negatives are gone, but nothing was halved: the second hook does not return `grad / 2`, or is not on.",
            ),
            fails="branch",
        ),
        Mistake(
            "positive_missing",
            Text(
                zh="减半了，负数却还在：第一个钩子没有返回结果，或者没有挂上。",
                en="Everything is halved, but the negatives are still there: the first hook returns nothing, or is not on.",
            ),
            fails="branch",
        ),
        Mistake(
            "wrong_half",
            Text(
                zh="留下的是负数，去掉的是正数：方向反了。`clamp(min=0)` 留下正数。",
                en="The negatives stayed and the positives went: the wrong way round. `clamp(min=0)` keeps the positives.",
            ),
            fails="branch",
        ),
        Mistake(
            "doubled",
            Text(
                zh="支路的梯度加倍了，应当减半：`grad / 2`。",
                en="The branch's gradient was doubled where it should be halved: `grad / 2`.",
            ),
            fails="branch",
        ),
        Mistake(
            "absolute",
            Text(
                zh="负数要变成 0，不是变成正数：`clamp(min=0)`，不是 `abs()`。",
                en="Negatives should become 0, not positive: `clamp(min=0)`, not `abs()`.",
            ),
            fails="branch",
        ),
        Mistake(
            "other_job",
            Text(
                zh="每个钩子只做自己那一件事：第一个去掉负数，第二个减半。",
                en="Each hook does its own job only: the first drops negatives, the second halves.",
            ),
            fails="alone",
        ),
        Mistake(
            "not_registered",
            Text(
                zh="`branch` 上没有钩子：最后一行要用 `branch.register_hook(...)` 把两个都挂上去。",
                en="There is no hook on `branch`: the last line must register both with `branch.register_hook(...)`.",
            ),
            fails="branch",
        ),
        Mistake(
            "merged",
            Text(
                zh="结果对了，但句柄只有 1 个，应当是 2 个，装在列表里：调用者要能单独取下其中一个。",
                en="The result is right, but there is 1 handle and there should be 2, in a list: "
                "your caller wants to take either of them off.",
            ),
            fails="handle",
        ),
        *(READS_DOT_GRAD, RETURNS_NO_TENSOR, OTHER_SHAPE, *MISREGISTERED, NO_HANDLE),
    ),
    insight=Text(
        zh="现在每个钩子都只读 `grad`、返回新张量。次序怎么换、取下哪一个，邻居都不会受影响。",
        en="Each hook now reads `grad` and returns a new tensor. Change their order or take one off: the neighbour never notices.",
    ),
)
