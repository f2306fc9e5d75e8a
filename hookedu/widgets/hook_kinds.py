"""The hooks that a GradientFlow can hang on a tensor. What it shows of them is their source, so what is shown is what runs."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import torch

from hookedu.language import Text


def double(grad):
    return grad * 2


def halve(grad):
    return grad / 2


def zero(grad):
    return torch.zeros_like(grad)


def double_in_place(grad):
    grad.mul_(2)


def zero_in_place(grad):
    grad.zero_()


@dataclass(frozen=True)
class HookKind:
    """One kind of hook.

    Attributes
    ----------
    mark : str
        The code of it that the drawing shows.
    says : Text
        Its name for people.
    function : callable or None
        The hook; None for printing, which needs the name of the tensor.
    instead : callable or None
        Of a hook that works in place, the one that returns the same numbers in a new tensor.
    """

    mark: str
    says: Text
    function: Callable[[torch.Tensor], torch.Tensor | None] | None
    instead: Callable[[torch.Tensor], torch.Tensor] | None = None

    def on(self, name: str) -> Callable[[torch.Tensor], torch.Tensor | None]:
        """Return the hook for a tensor."""
        return self.function or (lambda grad: print(f"{name}:", grad))


KINDS = {
    "print": HookKind("print", Text(zh="打印", en="print"), None),
    "double": HookKind("* 2", Text(zh="加倍", en="double"), double),
    "halve": HookKind("/ 2", Text(zh="减半", en="halve"), halve),
    "zero": HookKind("zeros", Text(zh="变成零", en="zero"), zero),
    "double_in_place": HookKind(
        "mul_(2)", Text(zh="就地加倍", en="double in place"), double_in_place, double
    ),
    "zero_in_place": HookKind("zero_()", Text(zh="就地变成零", en="zero in place"), zero_in_place, zero),
}


def code(output: str, leaves: list[str], hooks: dict[str, str]) -> str:
    """Return the program that hangs these hooks on, runs backward and takes them off.

    Parameters
    ----------
    output : str
        The name of the tensor from which backward starts.
    leaves : list of str
        The leaves whose gradients are printed.
    hooks : dict
        From the name of a tensor to a key of `KINDS`.
    """
    functions = dict.fromkeys(KINDS[kind].function for kind in hooks.values())
    lines = [inspect.getsource(function) for function in functions if function is not None]
    registered = [
        f"{name}.register_hook({_expression(name, KINDS[kind].function)})" for name, kind in hooks.items()
    ]
    if len(registered) == 1:
        lines += [f"handle = {registered[0]}"]
    elif registered:
        lines += ["handles = [", *(f"    {one}," for one in registered), "]"]
    if leaves:
        lines += [" = ".join(f"{name}.grad" for name in leaves) + " = None"]
    lines += [f"{output}.backward(retain_graph=True)"]
    if len(registered) == 1:
        lines += ["handle.remove()"]
    elif registered:
        lines += ["for handle in handles:", "    handle.remove()"]
    lines += [f'print("{name}.grad:", {name}.grad)' for name in leaves]
    return "\n".join(lines)


def _expression(name: str, function: Callable | None) -> str:
    return f'lambda grad: print("{name}:", grad)' if function is None else function.__name__
