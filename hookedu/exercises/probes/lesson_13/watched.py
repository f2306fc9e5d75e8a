"""What is observed of 13.1, `watched(model, name, hook)`: two compiled models of a class that was compiled before."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from hookedu.exercises.conduct import ATTRIBUTES, HANDLES
from hookedu.exercises.observation import type_name
from hookedu.exercises.probes.lesson_13.shared import settings
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies, linear, whole

LAYERS = ("encoder.fc", "head")
CALLS = 3  # of a compiled model with the hook on; every second with the opposite input
ADDED = 100.0  # what the second hook adds to the output, but in its second call
KINDS = ("closure", "object", "method", "partial")

Case = tuple[torch.Tensor, torch.Tensor, torch.Tensor, str, float]


def make_case(rng: Draw) -> Case:
    """Return (first weight, second weight, x, kind of the second hook, factor by which a weight changes in between)."""
    first, second, x = (whole(rng, 4).reshape(2, 2) for _ in range(3))
    return first, second, x, rng.choice(KINDS), float(rng.randint(2, 5))


class Net(nn.Module):
    """Two linear layers, the first of them inside another module. `plain` grows where no compiled code runs.

    The name `head` is also the end of another one, `encoder.head`.
    """

    def __init__(self, first: torch.Tensor, second: torch.Tensor) -> None:
        super().__init__()
        self.encoder = nn.ModuleDict({"fc": linear(first), "head": nn.Identity()})
        self.head = linear(
            second
        ).eval()  # other than the rest, so that one call of train() cannot restore all
        self.plain: list[int] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_compiling():  # compiled code leaves this out
            self.plain.append(1)
        return self.head(2 * self.encoder["head"](self.encoder["fc"](x)))


class _Two(nn.Module):
    """A layer that puts out a tuple."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return 2 * x, 3 * x


class _Sum(nn.Module):
    """A model that adds up what its layer puts out."""

    def __init__(self) -> None:
        super().__init__()
        self.two = _Two()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one, other = self.two(x)
        return one + other


def _tuples(watched: Any, x: torch.Tensor) -> Any:
    """Return what the model puts out of whose layer the hook replaces the tuple by another tuple, or the type of an error."""
    try:
        compiled, handle = watched(_Sum(), "two", lambda module, args, output: (10 * output[0], output[1]))
        try:
            return copies(compiled(x))
        finally:
            getattr(handle, "remove", lambda: None)()
    except Exception as error:
        return type_name(error)


def _look(module: nn.Module, args: Any, output: Any) -> None:
    """Stand on the layers as the hook of a third party."""


class _Boom(Exception):
    """Raised by a hook."""


class _Adding:
    """The second hook: it counts its calls and keeps what it gets in a dict, and adds to the output in some calls.

    In each of its forms another function does the work, which must not be compiled either.
    """

    def __init__(self) -> None:
        self.calls, self.seen, self.raises = 0, {}, False

    def __call__(self, *args: Any) -> torch.Tensor | None:
        return self.work(*args)

    def work(self, module: nn.Module, args: Any, output: Any) -> torch.Tensor | None:
        if self.raises:
            raise _Boom
        self.calls += 1
        self.seen[f"call {self.calls}"] = (module, args, output)
        return None if self.calls == 2 else output + ADDED

    def form(self, kind: str) -> Callable[[nn.Module, Any, Any], Any]:
        if kind == "closure":
            return lambda module, args, output: self.work(module, args, output)
        if kind == "partial":
            return functools.partial(_Adding.__call__, self)
        return self if kind == "object" else self.__call__


def _backend(compiled: Any) -> str:
    """Return the name of the backend that a module was compiled for."""
    from torch._dynamo.backends.registry import lookup_backend
    from torch._dynamo.eval_frame import innermost_backend

    with contextlib.suppress(Exception):
        backend: Any = innermost_backend(compiled.dynamo_ctx.callback)
        backend = getattr(backend, "compiler_fn", backend)
        if backend is lookup_backend("eager"):
            return "eager"
        return getattr(backend, "compiler_name", None) or getattr(backend, "__name__", "another")
    return "none"


def _built() -> int:
    """Return how often Dynamo has compiled something, for any backend."""
    from torch._dynamo.utils import counters

    return counters["frames"]["ok"]


def _attributes(model: nn.Module) -> dict[str, int]:
    """Return the identities of attributes that an answer might set; names of those of torch.compile begin with _."""
    return {
        f"{name}.{key}".removeprefix("."): id(value)
        for name, module in model.named_modules()
        for key, value in {**vars(module), **module._modules}.items()
        if not key.startswith("_") and key != "training"
    }


def _kind(value: Any) -> str:
    """Return what a returned value is: "compiled", "model", "handle", or the name of its type."""
    from torch._dynamo.eval_frame import OptimizedModule

    if isinstance(value, OptimizedModule):
        return "compiled"
    if isinstance(value, nn.Module):
        return "model"
    if callable(getattr(value, "remove", None)):
        return "handle"
    return "None" if value is None else type(value).__name__


def _layer(compiled: Any, name: str, layer: nn.Module) -> bool | None:
    """Return whether this is the layer of that name in a compiled model; None if it has none of that name."""
    with contextlib.suppress(AttributeError):
        return compiled.get_submodule(name) is layer
    return None


class _Scene:
    """One call of the answer, and calls of the compiled model that it returns, if it is compiled as asked."""

    def __init__(self, watched: Any, model: Net, name: str, hook: Any) -> None:
        self.model, self.layer = model, model.get_submodule(name)
        hooks, attributes = len(self.layer._forward_hooks), _attributes(model)
        returned = watched(model, name, hook)
        pair = type(returned) in (tuple, list) and len(returned) == 2
        self.compiled, self.handle = returned if pair else (None, None)
        kinds = [_kind(item) for item in returned] if pair else _kind(returned)
        self.report: dict[str, Any] = {
            "returned": kinds,
            "registered": len(self.layer._forward_hooks) > hooks,
            "layer": _layer(self.compiled, name, self.layer) if kinds[0] == "compiled" else None,
            "backend": _backend(self.compiled) if kinds[0] == "compiled" else None,
            "attributes": sorted(k for k, value in _attributes(model).items() if attributes.get(k) != value),
            **dict.fromkeys(("fired", "events", "outputs", "attached", "plain", "built", "rebuilt")),
        }
        # Other backends may take minutes, and another model may not take this input.
        self.runs = self.report["backend"] == "eager" and self.report["layer"] is not None

    def run(self, x: torch.Tensor, seen: Callable[[], list[Any]]) -> None:
        """Call the compiled model several times, and report what the hook, which keeps it in `seen`, got."""
        fired, outputs, built = [], [], [_built()]
        self.model.plain.clear()
        for n in range(CALLS):
            before = len(seen())
            outputs.append(self.compiled((-1) ** n * x))  # pyright: ignore[reportOptionalCall]
            fired.append(len(seen()) - before)
            built.append(_built())
        self.report |= {
            "fired": fired,
            "events": [
                [module is self.layer, copies(args), copies(output), getattr(output, "requires_grad", None)]
                for module, args, output, *_ in seen()
            ],
            "outputs": copies(outputs),
            "attached": all(getattr(output, "requires_grad", None) is True for output in outputs),
            "plain": len(self.model.plain),
            "built": built[1] - built[0],
            "rebuilt": built[-1] - built[1],
        }

    def remove(self) -> bool:
        """Call remove() of the handle, and return whether there is one."""
        remove = getattr(self.handle, "remove", None)
        return callable(remove) and (remove(), True)[1]

    def raises(self, x: torch.Tensor) -> bool:
        """Check whether what the hook raises comes out of the compiled model."""
        with contextlib.suppress(_Boom):
            self.compiled(x)  # pyright: ignore[reportOptionalCall]
            return False
        return True


def observe(watched: Any, case: Case) -> dict[str, Any]:
    """Watch a layer of two models whose class was compiled before; for the second, in a model with another layer."""
    import torch._dynamo  # takes seconds to load

    first, second, x, kind, factor = case
    one, two = Net(first, second), Net(first, second)
    # Only there: code that was compiled with a hook is not used for models without it.
    for model, name in zip((one, two), LAYERS, strict=True):
        model.get_submodule(name).register_forward_hook(_look)
    seen: list[Any] = []

    def keep(module: nn.Module, args: Any, output: Any) -> None:
        # Dynamo never compiles a function without operations on tensors.
        seen.append((module, args, output, output.detach()))

    rest: dict[str, Any] = dict.fromkeys(("removed", "silent", "after", "through", "tuples"))
    with settings() as changed:
        torch._dynamo.reset()  # what earlier checks compiled
        torch.compile(Net(first, second), backend="eager")(x)
        scene = _Scene(watched, one, LAYERS[0], keep)
        reports = [scene.report]
        if scene.runs:
            scene.run(x, lambda: seen)
            seen.clear()
            rest["removed"] = scene.remove()
            with torch.no_grad():
                one.head.weight.mul_(factor)  # as training does
            rest |= {"after": copies(scene.compiled(x)), "silent": not seen}  # pyright: ignore[reportOptionalCall]
            adding = _Adding()
            again = _Scene(watched, two, LAYERS[1], adding.form(kind))
            if again.runs:
                again.run(x, lambda: list(adding.seen.values()))
                adding.raises = True
                rest["through"] = again.raises(x)
            again.remove()
            reports.append(again.report)
            rest["tuples"] = _tuples(watched, x)
        else:
            scene.remove()
        whole = {name: reports[0][name] for name in ("returned", "layer", "backend")}
        return whole | rest | {"models": reports, "settings": changed()}


# What torch.compile adds are attributes, too, and those of an answer are observed here.
PROBE = Probe("13.1", "watched", make_case, observe, cases=1, leaves=(HANDLES, ATTRIBUTES), repeats=False)
