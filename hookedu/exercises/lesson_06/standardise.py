"""Exercise 06.4, `standardise(conv)`: recompute a convolution's weights before each forward pass."""

import random
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_06.shared import CALLS_NOW, NO_HANDLE, ONE_ARGUMENT
from hookedu.exercises.observation import show
from hookedu.exercises.probing import remove_handle
from hookedu.exercises.shared import hands_over
from hookedu.exercises.tools import close, copies, module_hooks, same
from hookedu.language import Text

_RATE = 0.5
_ROUNDING = 1e-3  # tolerance: the formula can be written in many ways


def _case(rng: random.Random) -> dict[str, torch.Tensor]:
    """Return weight and bias of a 2 -> 3 convolution with 2x2 kernels, an input and the weights of a loss.

    Only channel 0 is ordinary. Channel 1 is constant and the weights of channel 2 are tiny, so that the 1e-5 of
    the formula matters: without it channel 1 becomes nan, and in another position it changes channel 2.
    """
    out = 3

    def numbers(*shape: int, low: int = -9) -> torch.Tensor:
        values = [float(rng.randint(low, 9)) for _ in range(torch.Size(shape).numel())]
        return torch.tensor(values).reshape(shape)

    weight = numbers(out, 2, 2, 2, low=1)
    weight[:, 0, 0, 0], weight[:, 0, 0, 1] = 11.0, -12.0  # neither variance nor mean is 0
    weight[1] = weight[1, 1, 1, 1]
    weight[2] /= 2**12
    return {"weight": weight, "bias": numbers(out), "x": numbers(1, 2, 3, 3), "g": numbers(1, out, 2, 2)}


def _formula(weight: torch.Tensor, dims: tuple[int, ...] = (1, 2, 3), correction: int = 0) -> torch.Tensor:
    mean = weight.mean(dims, keepdim=True)
    return (weight - mean) / (weight.var(dims, keepdim=True, correction=correction) + 1e-5).sqrt()


def _close(got: Any, expected: torch.Tensor, channels: int = 0) -> bool:
    """Check closeness relative to each channel's largest value: channels differ by orders of magnitude."""
    if not isinstance(got, torch.Tensor) or got.shape != expected.shape or got.dtype != expected.dtype:
        return False
    pairs = zip(got.unbind(channels), expected.detach().unbind(channels), strict=True)
    return all(
        torch.allclose(one, other, rtol=0, atol=_ROUNDING * max(float(other.abs().max()), 1e-3))
        for one, other in pairs
    )


def _probe(standardise: Any, rng: random.Random) -> dict[str, Any]:
    case = _case(rng)
    conv = nn.Conv2d(2, len(case["bias"]), 2)
    assert conv.bias is not None
    with torch.no_grad():
        conv.weight.copy_(case["weight"])
        conv.bias.copy_(case["bias"])
    handle = standardise(conv)
    named = dict(conv.named_parameters())
    report = {"handle": handle, "hooks": module_hooks(conv), "parameters": sorted(named)}
    report["start"] = copies(named.get("weight_raw"))
    output = conv(case["x"])
    report |= {
        "output": copies(output),
        "new_parameter": set(dict(conv.named_parameters())) - set(named) != set(),
    }
    if not isinstance(output, torch.Tensor) or output.shape != case["g"].shape:
        return report
    (output * case["g"]).sum().backward()
    raw = named.get("weight_raw")
    report["gradient"] = copies(raw.grad) if raw is not None else None
    with torch.no_grad():  # one step of an optimizer that was created after standardise()
        for parameter in named.values():
            if parameter.grad is not None:
                parameter -= _RATE * parameter.grad
        report["again"] = copies(conv(case["x"]))
        remove_handle(handle)
        if raw is not None:
            raw.mul_(-1)  # without the hook the weights are not recomputed: same output
        report["after_removal"] = copies(conv(case["x"]))
    return report


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    case = _case(rng)
    weight, bias, x, g = (case[key] for key in ("weight", "bias", "x", "g"))
    raw = weight.clone().requires_grad_()
    expected = F.conv2d(x, _formula(raw), bias)
    (raw_grad,) = torch.autograd.grad((expected * g).sum(), raw)
    new_bias = bias - _RATE * g.sum((0, 2, 3))
    again = F.conv2d(x, _formula((raw - _RATE * raw_grad).detach()), new_bias)
    expected = expected.detach()

    out, names = saw["output"], saw["parameters"]
    wrong = {
        "changes_nothing": F.conv2d(x, weight, bias),
        "whole_tensor": F.conv2d(x, _formula(weight, (0, 1, 2, 3)), bias),
        "wrong_dims": F.conv2d(x, _formula(weight, (0,)), bias),
        "sample_variance": F.conv2d(x, _formula(weight, correction=1), bias),
        "no_root": F.conv2d(
            x, _formula(weight) / (weight.var((1, 2, 3), keepdim=True, correction=0) + 1e-5).sqrt(), bias
        ),
        "only_centres": F.conv2d(x, weight - weight.mean((1, 2, 3), keepdim=True), bias),
        "keeps_mean": F.conv2d(
            x, weight / (weight.var((1, 2, 3), keepdim=True, correction=0) + 1e-5).sqrt(), bias
        ),
        "misplaces_eps": expected,
    }
    start = saw["start"]
    if isinstance(out, torch.Tensor) and out.shape != expected.shape:
        mistake = "returns_weight"
    elif isinstance(start, torch.Tensor) and not same(start, weight):
        mistake = "other_start"
    else:  # by the ordinary channel: a wrong formula takes precedence over a misplaced 1e-5
        mistake = next((name for name, value in wrong.items() if _ordinary(out, value)), None)
        if mistake == "misplaces_eps" and bool(out.isnan().any()):
            mistake = "no_eps"
    given = f"conv = nn.Conv2d(2, {len(bias)}, 2); standardise(conv); conv(x)"
    gradient = saw.get("gradient")
    return [
        Criterion(
            "output",
            _close(out, expected, channels=1),
            points=2,
            essential=True,
            given=given,
            expected=show(expected),
            got=show(out),
            mistake=mistake,
        ),
        Criterion(
            "parameters",
            names == ["bias", "weight_raw"],
            points=1,
            given="sorted(name for name, _ in conv.named_parameters())",
            expected="['bias', 'weight_raw']",
            got=show(names),
            mistake="overwrites_weight"
            if "weight" in names
            else "raw_not_parameter"
            if "weight_raw" not in names
            else None,
        ),
        Criterion(
            "gradient",
            _close(gradient, raw_grad),
            points=1,
            given=given + "; loss.backward()",
            expected=f"conv.weight_raw.grad == {show(raw_grad)}",
            got=show(gradient),
            mistake="new_parameter"
            if saw["new_parameter"]
            else "detached"
            if gradient is None
            else "half_detached",
        ),
        Criterion(
            "rebuilt",
            _close(saw.get("again"), again, channels=1),
            points=1,
            given=given + "; loss.backward(); optimizer.step(); conv(x)",
            expected=show(again),
            got=show(saw.get("again")),
            mistake="once_only",
        ),
        hands_over("standardise(conv)", saw["handle"], same(saw.get("after_removal"), saw.get("again"))),
    ]


def _ordinary(got: Any, expected: torch.Tensor) -> bool:
    return isinstance(got, torch.Tensor) and close(got[:, :1], expected[:, :1], _ROUNDING)


STANDARDISE = Exercise(
    id="06.4",
    title=Text(zh="标准化权重", en="Standardise the weights"),
    answer="standardise",
    points=6,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="照 6.11 节的做法：把原来的 `Parameter` 改名为 `weight_raw`，用 `del` 删去 `weight`，再让前置钩子每次重新算出 `weight`。",
            en="Do as in section 6.11: move the `Parameter` to the name `weight_raw`, `del` the name `weight`, and let a pre-hook "
            "compute `weight` anew each time.",
        ),
        Text(
            zh="每个输出通道各算各的：`mean((1, 2, 3), keepdim=True)`，方差用 `var((1, 2, 3), keepdim=True, correction=0)`。不要用 `.data`、`detach()` 或 `no_grad`，否则梯度到不了 `weight_raw`。",
            en="Each output channel on its own: `mean((1, 2, 3), keepdim=True)`, and for the variance "
            "`var((1, 2, 3), keepdim=True, correction=0)`. No `.data`, `detach()` or `no_grad`, or the gradient never gets to `weight_raw`.",
        ),
        Text(
            zh="先 `conv.weight_raw = conv.weight`，再 `del conv.weight`。钩子里：`w = module.weight_raw`，算出 `mean` 和 `var`，`module.weight = (w - mean) / (var + 1e-5).sqrt()`。最后返回句柄。",
            en="First `conv.weight_raw = conv.weight`, then `del conv.weight`. In the hook: `w = module.weight_raw`, compute `mean` and `var`, "
            "`module.weight = (w - mean) / (var + 1e-5).sqrt()`. Return the handle at the end.",
        ),
    ),
    mistakes=(
        Mistake(
            "changes_nothing",
            Text(
                zh="输出和没有标准化时一模一样：要么钩子没有挂上，要么算出的权重没有放进 `module.weight`。",
                en="The output is what it is without any standardisation: either no hook is on the layer, or the new weights never got into `module.weight`.",
            ),
            fails="output",
        ),
        Mistake(
            "whole_tensor",
            Text(
                zh="你用了整个权重的均值和方差。要每个输出通道各算各的：维度 `(1, 2, 3)`，加上 `keepdim=True`。",
                en="You took mean and variance of the whole weight. Each output channel needs its own: dims `(1, 2, 3)`, with `keepdim=True`.",
            ),
            fails="output",
        ),
        Mistake(
            "wrong_dims",
            Text(
                zh="维度反了：你是在输出通道**之间**求均值。第 0 维是输出通道，要留着它，对 `(1, 2, 3)` 求。",
                en="The dims are the wrong way round: you averaged **across** output channels. Dim 0 holds them; keep it and reduce `(1, 2, 3)`.",
            ),
            fails="output",
        ),
        Mistake(
            "sample_variance",
            Text(
                zh="差一点点：`var` 和 `std` 默认除以 n - 1。这里要除以 n，写 `correction=0`。",
                en="Nearly: `var` and `std` divide by n - 1 unless told otherwise. Here it is n, so write `correction=0`.",
            ),
            fails="output",
        ),
        Mistake(
            "no_root",
            Text(
                zh="除以的是方差，少了开方：`(var + 1e-5).sqrt()`。",
                en="You divided by the variance; the square root is missing: `(var + 1e-5).sqrt()`.",
            ),
            fails="output",
        ),
        Mistake(
            "only_centres",
            Text(
                zh="减了均值，却没有除：还要除以 `(var + 1e-5).sqrt()`。",
                en="The mean is off, but nothing was divided: divide by `(var + 1e-5).sqrt()` as well.",
            ),
            fails="output",
        ),
        Mistake(
            "keeps_mean",
            Text(
                zh="除了，却没有减：分子应当是 `w - mean`，不是 `w`。",
                en="You divided without subtracting first: above the line stands `w - mean`, not `w`.",
            ),
            fails="output",
        ),
        Mistake(
            "no_eps",
            Text(
                zh="方差为 0 的通道得到 `nan`：`1e-5` 要加在根号里面，写成 `(var + 1e-5).sqrt()`。",
                en="A channel of variance 0 gave `nan`: add `1e-5` inside the root, as in `(var + 1e-5).sqrt()`.",
            ),
            fails="output",
        ),
        Mistake(
            "misplaces_eps",
            Text(
                zh="普通的通道对了，方差很小的通道不对：要在根号**里面**加 `1e-5`，也就是 `(var + 1e-5).sqrt()`。",
                en="An ordinary channel is right, one with a tiny variance is not: what the root needs **inside** is `1e-5`, "
                "that is `(var + 1e-5).sqrt()`.",
            ),
            fails="output",
        ),
        Mistake(
            "other_start",
            Text(
                zh="`weight_raw` 要从原来的 `weight` 开始：换成新的随机数，已经学到的就丢了。",
                en="`weight_raw` has to start from the old `weight`: with other numbers, all that was learned is lost.",
            ),
            fails="output",
        ),
        Mistake(
            "returns_weight",
            Text(
                zh="输出的形状不对：钩子返回了权重，而返回的东西会替换**输入**。只给 `module.weight` 赋值，什么也不返回。",
                en="The output has the wrong shape: your hook returned the weights, and what it returns replaces the **input**. "
                "Assign to `module.weight` and return nothing.",
            ),
            fails="output",
        ),
        Mistake(
            "overwrites_weight",
            Text(
                zh="可训练的仍是 `weight`，而且每次都被标准化的结果盖掉：梯度绕过了公式，训练的是另一个东西。把原来的留作 `weight_raw`，再 `del conv.weight`。",
                en="`weight` is still the parameter, and its values get overwritten: the gradient bypasses the formula, so training "
                "does something else. Keep the original as `weight_raw` and `del conv.weight`.",
            ),
            fails="parameters",
        ),
        Mistake(
            "raw_not_parameter",
            Text(
                zh="`conv.parameters()` 里找不到 `weight_raw`：它只是个变量，优化器看不到，也不会进 `state_dict`。把 `Parameter` 存到 `conv.weight_raw`。",
                en="`weight_raw` is not among `conv.parameters()`: as a mere variable, neither the optimizer nor `state_dict` sees it. "
                "Store the `Parameter` as `conv.weight_raw`.",
            ),
            fails="parameters",
        ),
        Mistake(
            "new_parameter",
            Text(
                zh="每次前向传播都新建了一个 `nn.Parameter`：梯度停在它那里，优化器手里的 `weight_raw` 永远不动。直接给 `module.weight` 赋一个普通张量。",
                en="Each forward pass makes a new `nn.Parameter`: the gradient ends there, and the `weight_raw` that the optimizer holds "
                "never moves. Assign a plain tensor to `module.weight`.",
            ),
            fails="gradient",
        ),
        Mistake(
            "detached",
            Text(
                zh="`weight_raw.grad` 是 `None`：`.data`、`detach()` 或 `no_grad` 把图剪断了，它永远学不到东西。去掉它们。",
                en="`weight_raw.grad` is `None`: `.data`, `detach()` or `no_grad` cut the graph, and it will never learn. Leave them out.",
            ),
            fails="gradient",
        ),
        Mistake(
            "half_detached",
            Text(
                zh="梯度有了，数却不对：均值或方差是从 `.data`、`detach()` 算出来的，它们那一路的梯度就少了。整个公式都从 `weight_raw` 算。",
                en="There is a gradient, with wrong numbers: mean or variance came from `.data` or `detach()`, so their share is missing. "
                "Compute the whole formula from `weight_raw`.",
            ),
            fails="gradient",
        ),
        Mistake(
            "once_only",
            Text(
                zh="优化器走了一步，权重却没有跟着变：你只在注册时算了 1 次。要放进前置钩子，每次前向传播之前都算。",
                en="The optimizer took a step, but the weights did not follow: you computed them only 1 time, when registering. "
                "Do it in a pre-hook, before each forward pass.",
            ),
            fails="rebuilt",
        ),
        Mistake(
            "assigns_to_parameter",
            Text(
                zh="`weight` 还登记为参数，不肯接受普通张量。先 `conv.weight_raw = conv.weight`，再 `del conv.weight`，之后就可以赋值。",
                en="`weight` is still registered as a parameter and refuses a plain tensor. First `conv.weight_raw = conv.weight`, then "
                "`del conv.weight`; after that you can assign.",
            ),
            raises=r"cannot assign '.*' as parameter 'weight'",
        ),
        Mistake(
            "leaf_in_place",
            Text(
                zh="不能就地修改一个需要梯度的叶子。不要用 `-=`、`sub_`：从 `weight_raw` 算出新的张量，赋给 `module.weight`。",
                en="A leaf that needs a gradient cannot be changed in place. No `-=` or `sub_`: compute a new tensor from `weight_raw` "
                "and assign it to `module.weight`.",
            ),
            raises=r"leaf Variable that requires grad",
        ),
        Mistake(
            "no_weight_yet",
            Text(
                zh="`forward` 运行时 `weight` 还不存在。`register_forward_hook` 太晚了；要用 `register_forward_pre_hook`，在钩子里给 `module.weight` 赋值。",
                en="When `forward` ran there was no `weight`. `register_forward_hook` comes too late; use `register_forward_pre_hook` "
                "and assign `module.weight` in the hook.",
            ),
            raises=r"has no attribute 'weight'",
        ),
        *(CALLS_NOW, ONE_ARGUMENT, NO_HANDLE),
    ),
    insight=Text(
        zh="优化器只认识 `weight_raw`，`forward` 只认识 `weight`，前置钩子站在两者之间；`torch.nn.utils.prune` 正是这样写的。",
        en="The optimizer knows only `weight_raw`, `forward` knows only `weight`, and the pre-hook stands between them; "
        "`torch.nn.utils.prune` is written just so.",
    ),
)
