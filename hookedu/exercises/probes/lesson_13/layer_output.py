"""What is observed of 13.2, `layer_output(compiled, name, x)`: two outputs, the compiled model afterwards, another input."""

import contextlib
import random
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import nn

from hookedu.exercises.conduct import Stopped
from hookedu.exercises.probes.lesson_13.shared import settings
from hookedu.exercises.probing import Probe
from hookedu.exercises.tools import copies, linear, module_hooks, whole

LAYERS = ("encoder.fc", "head")


def make_case(rng: random.Random) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return (first weight, second weight, x); x has two rows, and a value above 1 in the second."""
    x = torch.cat([whole(rng, 3) / 16, torch.tensor([1.5])])
    return whole(rng, 4).reshape(2, 2), whole(rng, 4).reshape(2, 2), x.reshape(2, 2)


class Net(nn.Module):
    """Two linear layers, the first of them inside another module; what they put out is then changed in place.

    In training mode the second layer gets twice as much, as after a dropout of one half that drops nothing.
    """

    def __init__(self, first: torch.Tensor, second: torch.Tensor) -> None:
        super().__init__()
        self.encoder = nn.ModuleDict({"fc": linear(first)})
        self.head = linear(second)
        # Unused: compiled code depends on the others.
        self.frozen = nn.Parameter(torch.ones(1), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.encoder["fc"](x).tanh_()
        between = 2 * hidden if self.training else hidden
        out = self.head(between).mul_(3)
        between.data.zero_()  # so that nobody can run the layer again on the input that was kept
        return out


def _look(module: nn.Module, args: Any, output: Any) -> None:
    """Stand on the layers as the hook of a third party."""


class _Raising:
    """In place of the `forward` of a layer: raise an exception, as if somebody interrupted the kernel, and note it."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error, self.raised = error, False

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.raised = True
        raise self.error("interrupted")


def _unrestored(layer_output: Any, compiled: nn.Module, x: torch.Tensor) -> list[str]:
    """Raise exceptions inside the model, and return what the answer leaves of its own.

    The first is a RuntimeError, from an input that is too wide. The others come after the layer that is asked for has run,
    one a ValueError, one no Exception at all. What is left is "swallowed" if one does not come out of the answer. The
    hooks that it leaves are removed, and grad mode, if it was on, is on again: else the model would be compiled anew.
    """
    frames, left = torch._dynamo.eval_frame, []
    stance, tables = str(frames._stance), [module._forward_hooks for module in compiled.modules()]
    before, with_grad = [set(table) for table in tables], torch.is_grad_enabled()
    with contextlib.suppress(Exception):
        layer_output(compiled, LAYERS[1], x.repeat(1, 2))
        left.append("swallowed")
    layer = compiled.get_submodule(LAYERS[1])
    for error in (ValueError, Stopped):
        layer.forward = raising = _Raising(error)
        try:
            with contextlib.suppress(Exception, Stopped):
                layer_output(compiled, LAYERS[0], x)
                left += ["swallowed"] * raising.raised  # compiled code does not ask for it
        finally:
            del layer.forward
    for table, kept in zip(tables, before, strict=True):
        for added in table.keys() - kept:
            left.append("hooks")
            del table[added]
    if with_grad and not torch.is_grad_enabled():
        left.append("grad mode")
        torch.set_grad_enabled(True)
    return left + (["stance"] if str(frames._stance) != stance else [])


def _compiled(model: Net, backend: Any) -> Any:
    """Compile a model on its own.

    Dynamo keeps compiled code with the code object, which all instances of a class share: checks would reuse each
    other's compilations, and after the eighth nothing would be compiled at all.
    """
    model.forward = MethodType(FunctionType(Net.forward.__code__.replace(), Net.forward.__globals__), model)
    return torch.compile(model, backend=backend, dynamic=False)


def doubles(x: torch.Tensor) -> torch.Tensor:
    """Return a batch of one, in float64 and of three dimensions; its digits do not fit into float32."""
    return x.double()[None] + 2**-40


def _of_doubles(layer_output: Any, case: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> Any:
    """Return what the answer gives for the last layer of a model in float64; None if it raises an exception."""
    first, second, x = case
    compiled = _compiled(Net(first, second).double(), "eager")
    compiled(doubles(x))
    with contextlib.suppress(Exception):
        return layer_output(compiled, LAYERS[1], doubles(x))
    return None


def observe(layer_output: Any, case: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> dict[str, Any]:
    """Compile a model, ask the answer for the output of each layer, and run the compiled model once more."""
    # Counts compilations by any backend; imported here because it takes seconds to load.
    from torch._dynamo.utils import counters

    first, second, x = case
    model, ran = Net(first, second), []
    model.encoder.eval()  # other than the rest, so that one call of train() cannot restore all
    model.head.weight.grad = torch.ones(2, 2)

    def backend(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        """Compile nothing, as "eager" does, and note each run of the graph."""
        return lambda *args: ran.append(graph) or graph.forward(*args)

    compiled = _compiled(model, backend)
    with settings() as changed:
        compiled(x)
        # Only now: where hooks are part of the compiled code, a further one makes Dynamo compile anew.
        handles = [model.get_submodule(name).register_forward_hook(_look) for name in LAYERS]
        built, modes = counters["frames"]["ok"], [m.training for m in model.modules()]
        # Nothing of this call may be left in the next ones, and the stance of the caller must remain.
        # Where that makes the answer fail, the next calls tell.
        with torch.compiler.set_stance("eager_on_recompile"):
            with contextlib.suppress(Exception):
                layer_output(compiled, LAYERS[0], -x)
            unrestored = _unrestored(layer_output, compiled, x)
        outputs = {name: layer_output(compiled, name, x.clone()) for name in LAYERS}
        inside = counters["frames"]["ok"] - built
        report = {
            "outputs": copies(outputs),
            "detached": not any(isinstance(o, torch.Tensor) and o.requires_grad for o in outputs.values()),
            "left": max(0, module_hooks(compiled) - len(handles)),
            "unrestored": unrestored,
            "modes": sum(m.training != before for m, before in zip(model.modules(), modes, strict=True)),
        }
        ran.clear()
        compiled(x)
        report |= {
            "stance": bool(ran),
            "rebuilt": counters["frames"]["ok"] - built,
            "rebuilt_inside": inside,
            "settings": changed(),
        }
        return report | {"of_doubles": copies(_of_doubles(layer_output, case))}


PROBE = Probe("13.2", "layer_output", make_case, observe, cases=1, repeats=False)
