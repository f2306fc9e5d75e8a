"""record() on every classification model that torchvision lists, with random weights, in eval and train mode.

A small one of each family runs in `make test`, all others (marked zoo) in `make zoo`.
"""

import operator
from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torchvision import models
from torchvision.models.feature_extraction import create_feature_extractor, get_graph_node_names

from hookedu import record
from hookedu.hooks.tensors import tensors_in
from tests.hooks.capture_models import hook_tables

# 32×32 is the smallest image on which most models do meaningful work (fully convolutional ones accept a
# single pixel, but then see little but padding). These models need a larger one, or get the size when they
# are built.
SIZES = {"alexnet": 63, "inception_v3": 299, "maxvit_t": 224}
OPTIONS = {"googlenet": {"init_weights": False}, "inception_v3": {"init_weights": False}}
PATCH = {"vit_b_16": 16, "vit_b_32": 32, "vit_h_14": 14, "vit_l_16": 16, "vit_l_32": 32}
UNTRACEABLE = {"maxvit_t"}  # torch.fx cannot trace its control flow


# One of each family, where two are not nearly the same. vgg11 is large, and inception_v3 and maxvit_t need large images: `make zoo` has them.
FAMILIES = (
    "alexnet",
    "convnext_tiny",
    "densenet121",
    "efficientnet_b0",
    "googlenet",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "regnet_y_400mf",
    "resnet18",
    "shufflenet_v2_x0_5",
    "squeezenet1_1",
    "swin_v2_t",
    "vit_b_32",
)


def _parameters(name: str) -> int:
    return models.get_model_weights(name).DEFAULT.meta["num_params"]


def _case(name: str):
    # Large models never run two at a time: two workers would need twice the memory.
    groups = [pytest.mark.xdist_group("large models")] if _parameters(name) > 50e6 else []
    return pytest.param(name, marks=[*groups, *([] if name in FAMILIES else [pytest.mark.zoo])])


NAMES = [_case(name) for name in models.list_models(module=models)]


@pytest.fixture(autouse=True)
def one_thread():
    """Use one thread: small models gain nothing from more, and test processes would compete for cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def quick_init(monkeypatch):
    """Initialise with normal_ instead of trunc_normal_, which takes seconds for a large model."""
    monkeypatch.setattr(
        nn.init, "trunc_normal_", lambda t, mean=0.0, std=1.0, *_, **__: nn.init.normal_(t, mean, std)
    )


def build(name: str) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    size, options = SIZES.get(name, 32), OPTIONS.get(name, {})
    if name in PATCH:
        size = 2 * PATCH[name]
        options = {"image_size": size}
    return models.get_model(name, **options), torch.randn(2, 3, size, size)


def run(model, x, train, recorder=None):
    """Return (output, buffers, RNG state) of a run that always starts from the same state."""
    torch.manual_seed(1)
    with nullcontext() if train else torch.no_grad(), recorder or nullcontext():
        output = list(tensors_in(model(x)))
    return output, [buffer.clone() for buffer in model.buffers()], torch.get_rng_state()


def restore(model: nn.Module, buffers: list[torch.Tensor]) -> None:
    for buffer, before in zip(model.buffers(), buffers, strict=True):
        buffer.copy_(before)


def leaves(name: str, module: nn.Module) -> bool:
    return not any(module.children())


@pytest.mark.parametrize("name", NAMES)
def test_every_model_is_recorded_and_left_as_it_was(name, quick_init):
    model, x = build(name)
    state = [buffer.clone() for buffer in model.buffers()]
    clones = {key: [] for key, module in model.named_modules() if leaves(key, module)}
    for key, kept in clones.items():
        model.get_submodule(key).register_forward_hook(
            lambda m, i, o, kept=kept: kept.append([t.detach().clone() for t in tensors_in(o)])
        )
    for train in (False, True):
        model.train(train)
        modes, tables = [m.training for m in model.modules()], hook_tables(model)
        expected, buffers, rng = run(model, x, train)
        restore(model, state)
        for kept in clones.values():
            kept.clear()

        recorder = record(model, leaves)
        output, buffers_now, rng_now = run(model, x, train, recorder)

        assert all(map(torch.equal, output, expected)), "outputs are the same bits"
        assert all(map(torch.equal, buffers_now, buffers)) and torch.equal(rng_now, rng)
        assert [m.training for m in model.modules()] == modes
        assert hook_tables(model) == tables, "no hook of ours is left, none of the user's is gone"
        for key, kept in clones.items():
            recorded = [list(tensors_in(c.activation)) for c in recorder[key].calls] if kept else []
            assert len(recorded) == len(kept) and (kept or key in recorder.missed), key
            for ours, theirs in zip(recorded, kept, strict=True):
                assert len(ours) == len(theirs) and all(map(torch.equal, ours, theirs)), key
        if train:
            assert all(p.grad is None for p in model.parameters())
        else:
            run_that_fails_half_way(model, x, clones, tables)
            agree_with_feature_extractor(name, model, x, recorder)
        restore(model, state)
        recorder.close()


def run_that_fails_half_way(model, x, clones, tables):
    called = [key for key, kept in clones.items() if kept]
    middle = called[len(called) // 2]

    def fail(module, args):
        raise InterruptedError("half way")

    handle = model.get_submodule(middle).register_forward_pre_hook(fail)
    with pytest.raises(InterruptedError), record(model, leaves, inputs=True) as rec, torch.no_grad():
        model(x)
    handle.remove()
    assert hook_tables(model) == tables
    assert rec.failed_at == middle and rec[called[0]].activation is not None


def agree_with_feature_extractor(name, model, x, recorder):
    """Compare with torchvision's extractor the outputs that no in-place operation changes.

    torch.fx returns what in-place operations have left of a tensor.
    """
    if name in UNTRACEABLE:
        return
    _, nodes = get_graph_node_names(model, suppress_diff_warning=True)
    extractor = create_feature_extractor(model, nodes[1:], suppress_diff_warning=True).eval()
    torch.manual_seed(1)
    with torch.no_grad():
        features = extractor(x)
    (returned,) = (node for node in extractor.graph.nodes if node.op == "output")
    compared = 0
    for key, node in returned.args[0].items():
        # By the node's target, because torchvision's keys call the second of ln_1 and ln_2 "ln_1", too.
        alone = node.op == "call_module" and node.target in recorder and len(recorder[node.target].calls) == 1
        if alone and not any(works_in_place(extractor, user, node) for user in node.users):
            assert torch.equal(recorder[node.target].activation, features[key]), key
            compared += 1
    assert compared >= 1


def works_in_place(model, user, node) -> bool:
    if user.op == "call_module":
        return getattr(model.get_submodule(user.target), "inplace", False)
    return user.target in (operator.iadd, operator.imul) or bool(user.kwargs.get("inplace"))


@pytest.mark.parametrize(
    "name", ["alexnet", "resnet18", "squeezenet1_1", pytest.param("vgg11", marks=pytest.mark.zoo)]
)
def test_gradients_equal_those_of_the_model_without_in_place(name, quick_init):
    model, x = build(name)
    model.eval()  # no dropout, so that both runs compute the same
    chosen = [
        key for key, m in model.named_modules() if isinstance(m, nn.Conv2d | nn.Linear | nn.BatchNorm2d)
    ]
    with record(model, chosen, gradients=True) as ours:
        model(x).square().sum().backward()
    gradients = {key: [] for key in chosen}
    in_place = [m for m in model.modules() if getattr(m, "inplace", False)]
    assert in_place
    for module in in_place:
        module.inplace = False
    if name == "resnet18":  # its `out += identity` is in place, too: let it change a clone
        for module in model.modules():
            if isinstance(module, models.resnet.BasicBlock):
                module.bn2.register_forward_hook(lambda m, i, o, key=None: o.clone())
    handles = [
        model.get_submodule(key).register_forward_hook(
            lambda m, i, o, key=key: o.register_hook(lambda g: gradients[key].append(g.clone())) and None,
            prepend=True,
        )
        for key in chosen
    ]
    model(x).square().sum().backward()
    assert len(handles) == len(chosen)
    for key in chosen:
        (expected,) = gradients[key]
        assert torch.equal(ours[key].gradient, expected), key
