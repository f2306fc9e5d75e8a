"""diagnose() finds nothing in models by other authors, and leaves them as they were, with harmless hooks everywhere."""

import contextlib
import functools
import io

import pytest
import torch
from torch import nn

from hookedu import diagnose
from hookedu.hooks.tensors import tensors_in
from tests.hooks.capture_models import hook_tables
from tests.hooks.test_capture_zoo import NAMES, build, one_thread, quick_init  # noqa: F401  # fixtures
from tests.hooks.zoo_models import SPECIMENS

KEPT: dict[str, list[torch.Tensor]] = {}


def keep_clones(name, module, args, output):
    KEPT[name] = [tensor.detach().clone() for tensor in tensors_in(output)]


def print_shapes(module, args, kwargs):
    print([tuple(tensor.shape) for tensor in tensors_in((args, kwargs))])


def print_norm(grad):
    print(grad.norm())


def marks(model: nn.Module) -> list:
    tensors = [*model.parameters(), *model.buffers()]
    return [
        [(id(t), t._version, t.requires_grad, t.grad) for t in tensors],
        [t.detach().clone() for t in tensors],
        [module.training for module in model.modules()],
        torch.get_rng_state(),
    ]


def same(one, other) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one is other or one == other


def hang_harmless_hooks(model: nn.Module, names: set[str]) -> None:
    """Hooks that keep detached clones, print shapes or print norms: on all modules that run, and on parameters."""
    for name, module in model.named_modules():
        if name in names:
            module.register_forward_pre_hook(print_shapes, with_kwargs=True)
            module.register_forward_hook(functools.partial(keep_clones, name))
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.register_hook(print_norm)
    model.zero_grad()


def examine(model: nn.Module, args: list, kwargs: dict, backward: bool) -> None:
    """Diagnose the model with its harmless hooks; `backward` also on parameters."""
    called: set[str] = set()
    handles = [
        module.register_forward_hook(lambda m, i, o, name=name: called.add(name))
        for name, module in model.named_modules()
    ]
    heads = [t for t in tensors_in(model(*args, **kwargs)) if t.requires_grad]
    if backward:
        torch.autograd.backward(heads, [torch.ones_like(head) for head in heads])
    for handle in handles:
        handle.remove()
    hang_harmless_hooks(model, called)
    before, tables = marks(model), hook_tables(model)
    with contextlib.redirect_stdout(io.StringIO()):
        found = diagnose(model, *args, **kwargs)
    assert not found, found
    assert same(marks(model), before) and hook_tables(model) == tables and not KEPT


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_in_models_of_torchvision(name, train, quick_init):  # noqa: F811
    model, x = build(name)
    with contextlib.nullcontext() if train else torch.no_grad():
        examine(model.train(train), [x], {}, backward=train)


@pytest.mark.zoo
@pytest.mark.parametrize("specimen", [s for s in SPECIMENS if "generate" not in str(s)], ids=str)
def test_nothing_in_models_of_other_libraries(specimen):
    if specimen.library in ("transformers", "timm"):
        pytest.importorskip(specimen.library)
    torch.manual_seed(0)
    model, given = specimen.build()
    examine(model.eval(), [given.pop("")] if "" in given else [], given, backward=False)
