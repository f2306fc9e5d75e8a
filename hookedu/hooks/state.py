"""Run a model or foreign code and restore the state of the model and of the process."""

import contextlib
import random
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

# The tables of global hooks, such as those of register_module_forward_hook, by their name in torch.
GLOBAL_HOOKS = {
    name: table
    for name, table in vars(nn.modules.module).items()
    if name.startswith("_global_") and isinstance(table, dict)
}


@contextlib.contextmanager
def restored(model: nn.Module | None = None) -> Iterator[None]:
    """Return a context manager that restores state at its end, also after an exception.

    It restores the RNGs of Python, NumPy and PyTorch, grad mode, the default dtype and the global hooks. With
    a model, it also restores training modes, buffers and the `.grad` of every parameter.
    """
    contents = {name: dict(table) for name, table in GLOBAL_HOOKS.items()}
    python_rng, torch_rng, dtype = random.getstate(), torch.get_rng_state(), torch.get_default_dtype()
    numpy_random: Any = sys.modules.get("numpy.random")  # NumPy loads it when it is first used
    numpy_rng = numpy_random.get_state() if numpy_random else None
    cuda_rng = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    grad_mode = torch.is_grad_enabled()
    modes = [(module, module.training) for module in model.modules()] if model else []
    buffers = [
        (module._buffers, name, buffer, buffer.detach().clone())
        for module, _ in modes
        for name, buffer in module._buffers.items()
        if buffer is not None and not is_lazy(buffer)
    ]
    grads = (
        [(p, p.grad, None if p.grad is None else p.grad.clone()) for p in model.parameters()] if model else []
    )
    try:
        yield
    finally:
        torch.set_grad_enabled(grad_mode)
        torch.set_default_dtype(dtype)
        torch.set_rng_state(torch_rng)
        torch.cuda.set_rng_state_all(cuda_rng) if cuda_rng else None
        random.setstate(python_rng)
        numpy_random.set_state(numpy_rng) if numpy_random else None
        for name, table in GLOBAL_HOOKS.items():
            table.clear()
            table.update(contents[name])
        for module, training in modes:
            module.training = training
        with torch.no_grad():
            for table, name, buffer, before in buffers:
                table[name] = buffer
                if not torch.equal(buffer, before):  # an unchanged buffer keeps its _version, too
                    buffer.copy_(before)
            for parameter, grad, before in grads:
                if grad is not None and before is not None and not torch.equal(grad, before):
                    grad.copy_(before)  # the same tensor with its old values, because backward adds in place
                parameter.grad = grad


# Who needs compiled models to run uncompiled at present, and the changes of stance that serve them all. Each of several
# recorders setting and restoring the stance by itself would restore what another had set.
_uncompiled: set[int] = set()
_changes: list[Any] = []


def run_uncompiled(holder: object) -> Callable[[], object]:
    """Let compiled models run uncompiled until `holder` is gone or the returned function is called.

    When the last of several holders has ended, the stance of torch's compiler is again what it was before the first,
    unless somebody else has set another one since.
    """
    if not (_changes and torch._dynamo.eval_frame._stance is _changes[-1].stance):
        _changes.append(torch.compiler.set_stance("force_eager"))
    _uncompiled.add(id(holder))
    release = weakref.finalize(holder, _release, id(holder))
    release.atexit = False  # torch may have been taken apart by then
    return release


def _release(holder: int) -> None:
    _uncompiled.discard(holder)
    while _changes and not _uncompiled:
        change = _changes.pop()
        if torch._dynamo.eval_frame._stance is change.stance:
            change.__exit__(None, None, None)
        # A with block of somebody else that began after the change will put its stance back: make it the earlier one.
        vars(change.stance).update(vars(change.prev))
