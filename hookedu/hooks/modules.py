"""Names and selection of the modules of a model, with errors that say what can be selected."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from torch import nn
from torch.jit import ScriptModule

from hookedu.language import Text

# One way to select layers: a dotted name, a module type, a module of the model, or a predicate.
Choice = str | type | nn.Module | Callable[[str, nn.Module], bool]


class LayerNotFound(KeyError):
    """No layer has that name; unlike a plain KeyError it shows its message with line breaks."""

    def __init__(self, message: Text) -> None:
        super().__init__(str(message))

    def __str__(self) -> str:
        return self.args[0]


def unwrap(model: nn.Module) -> nn.Module:
    """Return the model inside torch.compile, DataParallel (one GPU) and DistributedDataParallel; refuse TorchScript."""
    if not isinstance(model, nn.Module):
        raise TypeError(str(NOT_A_MODEL.format(got=type(model).__name__)))
    if isinstance(model, ScriptModule):
        raise TypeError(str(TORCHSCRIPT))
    wrapped = model._modules.get("module")
    if wrapped is not None and isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
        if isinstance(model, nn.DataParallel) and len(model.device_ids) > 1:
            raise ValueError(str(SEVERAL_GPUS))
        return unwrap(wrapped)
    compiled = model._modules.get("_orig_mod")
    return model if compiled is None else unwrap(compiled)


def is_compiled(model: nn.Module) -> bool:
    """Check whether torch.compile or Module.compile has been applied to the model or to a part of it."""
    return _collect(model, "", {})


def modules_by_name(model: nn.Module) -> dict[str, nn.Module]:
    """Return every module by every dotted name that it has, "" being the model itself.

    The wrapper that torch.compile puts around a part does not appear in the names.
    """
    return survey(model)[0]


def survey(model: nn.Module) -> tuple[dict[str, nn.Module], bool]:
    """Return what `modules_by_name` and `is_compiled` return, from one traversal of the model."""
    found: dict[str, nn.Module] = {}
    return found, _collect(model, "", found)


def _collect(module: nn.Module, path: str, found: dict[str, nn.Module]) -> bool:
    """Add a module and all its descendants to `found`; return whether any of them is compiled."""
    found[path] = module
    parts = module._modules
    compiled = "_orig_mod" in parts or module._compiled_call_impl is not None
    for name, child in parts.items():
        if child is None:
            continue
        # "_orig_mod" is what the compiled wrapper calls the module inside, which takes the wrapper's name.
        below = path if name == "_orig_mod" else f"{path}.{name}" if path else name
        if child._modules:  # most modules have no children, and this check is quicker than a call
            compiled |= _collect(child, below, found)
        else:
            found[below] = child
            compiled |= child._compiled_call_impl is not None
    return compiled


def choose(
    named: dict[str, nn.Module], layers: Choice | Iterable[Choice]
) -> dict[str, tuple[nn.Module, tuple[str, ...]]]:
    """Return the chosen layers in the model's order: name -> (module, its other names).

    `layers` is one or several of: a dotted name, a pattern of names (see `_matching`), a module type, a module of the
    model, a predicate (name, module) -> bool. Raises what `record` says; a KeyError is a `LayerNotFound`.
    """
    # Types and modules are callable. Anything that is no choice at all is rejected by `_matches`.
    if isinstance(layers, str) or callable(layers) or not hasattr(layers, "__iter__"):
        choices: list[Any] = [layers]
    else:
        choices = list(layers)
    if not choices or choices == [None]:
        raise ValueError(str(NOTHING_CHOSEN))
    chosen: set[int] = set()
    for choice in choices:
        if choice.__class__ is str and choice in named:  # by far the most frequent case, hence a fast path
            chosen.add(id(named[choice]))
        else:
            chosen.update(map(id, _matches(named, choice)))
    found = {name: (module, ()) for name, module in named.items() if id(module) in chosen}
    if len(found) > len(chosen):
        found = _first_names(found)
    scripted = [name for name, (module, _) in found.items() if isinstance(module, ScriptModule)]
    if scripted:  # one that a type or a pattern has chosen among others is left without hooks
        wanted = {id(named.get(choice) if isinstance(choice, str) else choice) for choice in choices}
        refused = [name for name in scripted if id(found[name][0]) in wanted or len(scripted) == len(found)]
        if refused:
            raise TypeError(str(TORCHSCRIPT_PART.format(name=refused[0])))
    return found


def _first_names(named: dict[str, tuple[nn.Module, tuple]]) -> dict[str, tuple[nn.Module, tuple[str, ...]]]:
    """Keep the first name of each module; the other names are its aliases."""
    names: dict[int, list[str]] = {}
    for name, (module, _) in named.items():
        names.setdefault(id(module), []).append(name)
    return {first: (named[first][0], tuple(others)) for first, *others in names.values()}


def _matches(named: dict[str, nn.Module], choice: Any) -> list[nn.Module]:
    """Return the modules that one choice selects; raise if there are none or it is no `Choice`."""
    if isinstance(choice, str):
        found = [named[choice]] if choice in named else _matching(choice, named)
        if not found:
            raise LayerNotFound(NO_SUCH_NAME.format(name=choice, close=closest(choice, list(named))))
        return found
    if isinstance(choice, nn.Module):
        if not any(module is choice for module in named.values()):
            raise ValueError(str(ANOTHER_MODEL.format(type=type(choice).__name__)))
        return [choice]
    if isinstance(choice, type):
        found = [module for module in named.values() if isinstance(module, choice)]
        what = choice.__name__
    elif callable(choice):
        found = [module for name, module in named.items() if choice(name, module)]
        what = getattr(choice, "__name__", repr(choice))
    else:
        raise TypeError(str(BAD_CHOICE.format(got=type(choice).__name__)))
    if not found:
        types = sorted({type(module).__name__ for module in named.values()})
        raise ValueError(str(NO_MATCH.format(what=what, types=", ".join(types))))
    return found


def _matching(pattern: str, named: dict[str, nn.Module]) -> list[nn.Module]:
    """Return the modules whose names match a pattern such as `blocks.*.attn`, or `**.attn` at any depth.

    The wildcards are those of the shell: `*`, `?` and `[...]` stay within one part of the name, and `**` stands for any
    number of parts, also none.
    """
    if not any(wildcard in pattern for wildcard in "*?["):
        return []

    def matches(wanted: list[str], names: list[str]) -> bool:
        if not wanted or wanted[0] != "**":
            same = bool(wanted and names) and fnmatchcase(names[0], wanted[0])
            return matches(wanted[1:], names[1:]) if same else not wanted and not names
        return matches(wanted[1:], names) or (bool(names) and matches(wanted, names[1:]))

    wanted = pattern.split(".")
    return [module for name, module in named.items() if name and matches(wanted, name.split("."))]


def closest(name: str, names: list[str], n: int = 5) -> str:
    """Return the `n` names most similar to a misspelt one, as text; names that share its end come first."""
    ends = [known for known in names if known.endswith(f".{name}") or (name.endswith(f".{known}") and known)]
    # Compare without case, answer in the model's own spelling.
    lower = {known.lower(): known for known in names}
    similar = [lower[match] for match in get_close_matches(name.lower(), list(lower), n=n, cutoff=0.5)]
    best = list(dict.fromkeys([*ends, *similar] or names))[:n]
    return ", ".join(repr(known) for known in best)


def why_never_called(
    named: dict[str, nn.Module], module: nn.Module, name: str, failed_at: str | None = None
) -> Text:
    """Return why hooks on `module` did not fire, as far as the model's structure (`modules_by_name`) tells.

    `failed_at` is the module in which the forward pass raised, if it did.
    That it was not called does not mean that it is of no use: fused attention reads the weights of its parts.
    """
    if isinstance(module, ScriptModule):
        return TORCHSCRIPT_PART.format(name=name)
    if isinstance(module, nn.ModuleList | nn.ModuleDict | nn.ParameterList | nn.ParameterDict):
        return CONTAINER.format(name=name, type=type(module).__name__)
    if failed_at is not None:
        return FAILED.format(name=name or "(model)", failed_at=failed_at or "(model)")
    above = ["", *(name[:i] for i, character in enumerate(name) if character == ".")] if name else []
    parents = [named[path] for path in above if path in named]
    if any(isinstance(parent, nn.MultiheadAttention) for parent in parents):
        return ATTENTION.format(name=name)
    if any(isinstance(parent, nn.TransformerEncoderLayer | nn.TransformerEncoder) for parent in parents):
        return FUSED.format(name=name)
    has_gradients = any(parameter.grad is not None for parameter in module.parameters(recurse=False))
    return (USED_UNCALLED if has_gradients else NEVER_CALLED).format(name=name or "(model)")


NOT_A_MODEL = Text(
    zh="需要一个 `nn.Module`，得到的是 `{got}`",
    en="a model must be an `nn.Module`, got `{got}`",
)
TORCHSCRIPT = Text(
    zh="TorchScript 模块不运行 Python 钩子；请用转换之前的 Python 模型",
    en="a TorchScript module runs no Python hooks; use the Python model that it was made from",
)
TORCHSCRIPT_PART = Text(
    zh="`{name}` 是 TorchScript 模块，不运行 Python 钩子；请不要选它，或者用转换之前的 Python 模块",
    en="`{name}` is a TorchScript module and runs no Python hooks; leave it out, or use the Python module that it was "
    "made from",
)
SEVERAL_GPUS = Text(
    zh="DataParallel 在多个 GPU 上运行的是各层的副本；请录制 `model.module`，并直接调用它",
    en="DataParallel on several GPUs runs copies of the layers; record `model.module` and call that",
)
NOTHING_CHOSEN = Text(
    zh='没有选择任何层；例如 `layers=["layer1.0.conv1"]` 或 `layers=nn.Conv2d`',
    en='no layer was chosen; for example `layers=["layer1.0.conv1"]` or `layers=nn.Conv2d`',
)
NO_SUCH_NAME = Text(
    zh="模型里没有名为 {name!r} 的层；最接近的有：{close}",
    en="the model has no layer named {name!r}; the closest are: {close}",
)
ANOTHER_MODEL = Text(
    zh="这个 `{type}` 不属于这个模型",
    en="this `{type}` does not belong to this model",
)
BAD_CHOICE = Text(
    zh="层可以用名字、类型、模块或函数来选，得到的是 `{got}`",
    en="a layer is chosen by a name, a type, a module or a function, got `{got}`",
)
NO_MATCH = Text(
    zh="没有一层符合 {what}；模型里有这些类型：{types}",
    en="no layer matches {what}; the model has these types: {types}",
)
CONTAINER = Text(
    zh="`{name}` 从未运行：`{type}` 只是容器，没有 forward，被调用的是它里面的模块",
    en="`{name}` never ran: a `{type}` only holds modules and has no forward; what is inside it gets called",
)
ATTENTION = Text(
    zh="`{name}` 从未运行：`MultiheadAttention` 只读取它的权重，从不调用它",
    en="`{name}` never ran: `MultiheadAttention` reads its weights and never calls it",
)
FUSED = Text(
    zh="`{name}` 从未运行：评估模式下 Transformer 编码器走了融合的快速路径；"
    "可用 `torch.backends.mha.set_fastpath_enabled(False)` 关闭",
    en="`{name}` never ran: in eval mode the Transformer encoder took its fused fast path; "
    "`torch.backends.mha.set_fastpath_enabled(False)` turns that off",
)
FAILED = Text(
    zh="`{name}` 没有完成任何一次调用：前向传播在 `{failed_at}` 里抛出了异常",
    en="`{name}` finished no call: the forward pass raised in `{failed_at}`",
)
NEVER_CALLED = Text(
    zh="`{name}` 从未被调用：模型没有运行（或者在挂上钩子之前就运行完了，或者在 `torch.compile` 编译的函数里、"
    "在 DataLoader 的工作进程这样的别的进程里运行），或者上层没有用到它、只读取它的权重（例如融合的注意力），"
    "或者调用的是它的 `.forward()`（会跳过钩子）",
    en="`{name}` was never called: the model did not run (or had run before the hooks were there, or ran inside a "
    "function compiled by `torch.compile`, or in another process, such as a DataLoader worker), or what is above does "
    "not use it, only reads its weights (as fused attention does), or calls its `.forward()`, which skips hooks",
)
USED_UNCALLED = Text(
    zh="`{name}` 从未被调用，但它的参数有 `.grad`，可见用到了它们：模型多半在挂上钩子之前就运行完了，"
    "或者上层直接读取这些参数（例如融合的注意力），或者调用的是它的 `.forward()`（会跳过钩子）",
    en="`{name}` was never called, but its parameters have a `.grad`, so they are used: most likely the model had run "
    "before the hooks were there, or what is above reads the parameters directly (as fused attention does), or calls "
    "its `.forward()`, which skips hooks",
)
