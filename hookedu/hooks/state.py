"""Run a model or foreign code and restore the state of the model and of the process."""

import contextlib
import random
from collections.abc import Iterator

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

    It restores the RNGs of Python and PyTorch, grad mode, the default dtype and the global hooks. With a
    model, it also restores training modes, buffers and the `.grad` of every parameter.
    """
    contents = {name: dict(table) for name, table in GLOBAL_HOOKS.items()}
    python_rng, torch_rng, dtype = random.getstate(), torch.get_rng_state(), torch.get_default_dtype()
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
