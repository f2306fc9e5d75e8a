"""Exercise 06.3, `log_kwargs(layer, log)`: log keyword arguments without keeping any tensor alive."""

import random
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_06.shared import (
    CALLS_NOW,
    NO_HANDLE,
    NOT_REGISTERED,
)
from hookedu.exercises.observation import show
from hookedu.exercises.probing import remove_handle
from hookedu.exercises.shared import hands_over
from hookedu.exercises.tools import copies, module_hooks, same
from hookedu.language import Text


class _Attend(nn.Module):
    """A layer with one positional input and any keyword arguments; it records what its forward receives."""

    def __init__(self):
        super().__init__()
        self.received: list[Any] = []
        self.inputs: list[Any] = []

    def forward(self, x: torch.Tensor, **options: Any) -> torch.Tensor:
        self.received.append(copies(_plain(options)))
        self.inputs.append(x)
        return x


def _plain(value: Any) -> Any:
    """Convert every torch.Size to a list: `encode` would keep only the name of its type."""
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, (list, torch.Size)):
        return [_plain(v) for v in value]
    return value


def _case(rng: random.Random) -> list[dict[str, Any]]:
    """Return the keyword arguments of three calls."""
    shape = (rng.randint(1, 4), rng.randint(2, 9))
    scales = rng.sample([0.25, 0.5, 1.5, 2.0, 2.5, 4.0, 8.0, 16.0], 2)
    return [{"mask": torch.zeros(shape), "scale": scales[0]}, {}, {"scale": scales[1]}]


def _probe(log_kwargs: Any, rng: random.Random) -> dict[str, Any]:
    layer, log, x = _Attend(), [], torch.ones(1, 2)
    handle = log_kwargs(layer, log)
    hooks = module_hooks(layer)
    outputs = [layer(x, **dict(options)) for options in _case(rng)]
    report = {"handle": handle, "hooks": hooks, "log": copies(_plain(list(log)))}
    report |= {"same_input": all(value is x for value in layer.inputs), "inputs": copies(layer.inputs)}
    report |= {"same_output": all(output is x for output in outputs), "received": list(layer.received)}
    remove_handle(handle)
    layer(x, scale=1.0)
    return report | {"after_removal": len(log) - len(report["log"])}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    options = _case(rng)
    expected = [
        {k: list(v.shape) if isinstance(v, torch.Tensor) else v for k, v in one.items()} for one in options
    ]
    log = saw["log"]
    calls = "; ".join(
        "layer(x" + "".join(f", {k}={_short(v)}" for k, v in one.items()) + ")" for one in options
    )
    same_kwargs = same_options(saw["received"], options)
    x = torch.ones(1, 2)
    return [
        Criterion(
            "positional",
            saw["same_input"],
            essential=True,
            given=calls,
            expected=Text(
                zh="`forward` 收到调用者的那个 `x`：{x}", en="`forward` gets the caller's own `x`: {x}"
            ).format(x=show(x)),
            got=show(saw["inputs"]),
            mistake="replaces_args" if all(same(value, x) for value in saw["inputs"]) else "unpacks_args",
        ),
        Criterion(
            "unchanged",
            saw["same_output"] and same_kwargs,
            essential=True,
            given=calls,
            expected=Text(
                zh="`forward` 收到同样的关键字参数", en="`forward` gets the same keyword arguments"
            ),
            got=show(saw["received"]),
            mistake=None if same_kwargs else "changes_kwargs",
        ),
        Criterion(
            "logs",
            log == expected,
            points=3,
            essential=True,
            given=calls,
            expected=f"log == {show(_with_tuples(expected))}",
            got=f"log == {show(_with_tuples(log))}",
            mistake=_logging_mistake(saw, log),
        ),
        hands_over("log_kwargs(layer, log)", saw["handle"], saw["after_removal"] == 0),
    ]


def _logging_mistake(saw: dict[str, Any], log: list[Any]) -> str | None:
    if not log:
        return "rebinds_log" if saw["hooks"] else "not_registered"
    if len(log) == 2:
        return "skips_empty"
    first = log[0]
    if isinstance(first, list) and first == ["mask", "scale"]:
        return "names_only"
    if not isinstance(first, dict) or not first.keys() <= {"mask", "scale"}:
        return "logs_positional"
    if any(isinstance(value, str) for value in first.values()):
        return "as_text"
    if isinstance(first.get("mask"), torch.Tensor):
        return "keeps_tensors"
    return "tensors_only" if "scale" not in first else None


def _with_tuples(log: list[Any]) -> list[Any]:
    """Return the log with shapes as tuples, as learners write them; `encode` has made lists of them."""
    return [
        {k: tuple(v) if isinstance(v, list) else v for k, v in one.items()} if isinstance(one, dict) else one
        for one in log
    ]


def _short(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"torch.zeros({', '.join(map(str, value.shape))})"
    return str(value)


def same_options(received: Any, expected: list[dict[str, Any]]) -> bool:
    """Check whether forward received the caller's names and values in every call."""
    if not isinstance(received, list) or len(received) != len(expected):
        return False
    return all(
        isinstance(got, dict)
        and got.keys() == one.keys()
        and all(same(got[k], v) if isinstance(v, torch.Tensor) else got[k] == v for k, v in one.items())
        for got, one in zip(received, expected, strict=True)
    )


LOG_KWARGS = Exercise(
    id="06.3",
    title=Text(zh="记录关键字参数", en="Log keyword arguments"),
    answer="log_kwargs",
    points=4,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="注册时写上 `with_kwargs=True`，钩子就会收到 3 个参数：`def note(module, args, kwargs):`。",
            en="Register with `with_kwargs=True`, and the hook gets 3 arguments: `def note(module, args, kwargs):`.",
        ),
        Text(
            zh="每次新建一个字典，逐个看 `kwargs.items()`：用 `isinstance(value, torch.Tensor)` 区分，张量只记 `tuple(value.shape)`。不要改 `kwargs` 本身。",
            en="Make a new dictionary each time and walk through `kwargs.items()`: `isinstance(value, torch.Tensor)` tells tensors, "
            "of which you keep only `tuple(value.shape)`. Leave `kwargs` itself alone.",
        ),
        Text(
            zh="`log.append({k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()})`，什么也不返回；最后 `return layer.register_forward_pre_hook(note, with_kwargs=True)`。",
            en="`log.append({k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()})`, returning nothing; "
            "at the end `return layer.register_forward_pre_hook(note, with_kwargs=True)`.",
        ),
    ),
    mistakes=(
        Mistake("not_registered", NOT_REGISTERED, fails="logs"),
        Mistake(
            "rebinds_log",
            Text(
                zh="钩子挂着，`log` 却是空的：`log = ...` 只是换了一个局部名字。请用 `log.append(...)`。",
                en="The hook is on, yet `log` is empty: `log = ...` only made a new local name. Use `log.append(...)`.",
            ),
            fails="logs",
        ),
        Mistake(
            "keeps_tensors",
            Text(
                zh="`log` 里存着张量本身：日志活多久，它们就占多久的内存。张量只记形状：`tuple(value.shape)`。",
                en="The log holds the tensors themselves: they stay in memory for as long as it lives. Keep only the shape: `tuple(value.shape)`.",
            ),
            fails="logs",
        ),
        Mistake(
            "as_text",
            Text(
                zh="`log` 里记成了文字。值要照原样记，不要转成字符串：以后还要拿来比较和计算。",
                en="The `log` holds text. Log values as they are, not as strings: somebody will compare them and compute with them.",
            ),
            fails="logs",
        ),
        Mistake(
            "skips_empty",
            Text(
                zh="没有关键字参数的那次调用没有记下来。每次调用都要有一项，哪怕是空字典 `{}`。",
                en="The call without keyword arguments is missing. Every call gets an entry, even if it is the empty dictionary `{}`.",
            ),
            fails="logs",
        ),
        Mistake(
            "names_only",
            Text(
                zh="只记了名字，没有记值。每项要是一个字典：名字 → 值（张量记形状）。",
                en="Only the names are there, not the values. Each entry is a dictionary from name to value (a shape, for a tensor).",
            ),
            fails="logs",
        ),
        Mistake(
            "tensors_only",
            Text(
                zh="不是张量的值（如 `scale`）丢了。它们要照原样记下来。",
                en="Values that are no tensors, such as `scale`, got lost. They are logged as they are.",
            ),
            fails="logs",
        ),
        Mistake(
            "logs_positional",
            Text(
                zh="每一项应当是一个字典，只装**关键字**参数；你记下的还有别的东西（例如 `args`）。",
                en="Each entry should be a dictionary of the **keyword** arguments alone; yours holds something else too (`args`, perhaps).",
            ),
            fails="logs",
        ),
        Mistake(
            "unpacks_args",
            Text(
                zh="`forward` 收到的**位置**参数变了：放进这一对的是 `args[0]`，应当是 `args`；只看不改就什么也不返回。",
                en="The **positional** arguments changed: the pair holds `args[0]` where it needs `args`; to only look, return nothing.",
            ),
            fails="positional",
        ),
        Mistake(
            "replaces_args",
            Text(
                zh="`forward` 收到的 `x` 数值没变，却不是调用者的那个张量：你返回了一份新的，`detach()` 还会剪断梯度。只看不改就什么也不返回。",
                en="`forward` got the same numbers, but not the caller's own `x`: you returned new tensors, and `detach()` cuts the gradient, "
                "too. To only look, return nothing.",
            ),
            fails="positional",
        ),
        Mistake(
            "changes_kwargs",
            Text(
                zh="`forward` 收到的不再是调用者给的：`kwargs` 就是要传下去的那个字典，`pop` 或赋值都会改到它。请另建一个字典，什么也不返回。",
                en="`forward` no longer gets what the caller gave: `kwargs` is the very dictionary that is passed on, and `pop` or an "
                "assignment changes it. Build a new one and return nothing.",
            ),
            fails="unchanged",
        ),
        Mistake(
            "flag_missing",
            Text(
                zh="钩子在等第 3 个参数，PyTorch 却只传了 2 个：注册时少了 `with_kwargs=True`。",
                en="Your hook waits for argument number 3, but PyTorch passes 2: `with_kwargs=True` is missing when you register it.",
            ),
            raises=r"missing 1 required positional argument",
        ),
        Mistake(
            "two_arguments",
            Text(
                zh="有了 `with_kwargs=True`，PyTorch 会传入 3 个参数：请写成 `def note(module, args, kwargs): ...`。",
                en="With `with_kwargs=True` PyTorch passes 3 arguments: write `def note(module, args, kwargs): ...`.",
            ),
            raises=r"takes 2 positional arguments but 3 were given",
        ),
        Mistake(
            "returns_something",
            Text(
                zh="只看不改就什么也不返回。`with_kwargs=True` 的钩子要么返回 `None`，要么返回一对 `(args, kwargs)`。",
                en="To look and not to change, return nothing. With `with_kwargs=True` a hook returns `None` or a pair `(args, kwargs)`.",
            ),
            raises=r"forward pre-hook must return None or a tuple",
        ),
        Mistake(
            "shape_of_a_number",
            Text(
                zh="不是每个值都是张量：数没有 `.shape`。先用 `isinstance(value, torch.Tensor)` 判断。",
                en="Not every value is a tensor: a number has no `.shape`. Ask `isinstance(value, torch.Tensor)` first.",
            ),
            raises=r"object has no attribute '(shape|size)'",
        ),
        *(CALLS_NOW, NO_HANDLE),
    ),
    insight=Text(
        zh="只有写了 `with_kwargs=True` 的钩子才看得到全部输入；日志里只有形状和数，不会让张量一直占着内存。",
        en="Only a hook registered with `with_kwargs=True` sees all of the input; and a log of shapes and numbers keeps no tensor in memory.",
    ),
)
