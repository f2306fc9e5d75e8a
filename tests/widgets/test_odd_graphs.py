"""GradientFlow on graphs whose backward does more than compute dense gradients: checkpoints, sparse gradients."""

import matplotlib.pyplot as plt
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from hookedu import GradientFlow, plot_graph
from tests.widgets.conftest import marks, same


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("show", ["flow", "plot"])
def test_a_checkpoint_that_runs_again_in_backward_leaves_no_trace(show, use_reentrant, untouched):
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
    x = torch.randn(4, 3, requires_grad=True)
    y = checkpoint(net, x, use_reentrant=use_reentrant, preserve_rng_state=False)
    tensors = {"x": x, "y": y, "loss": y.sum() ** 2}
    untouched(net)
    if show == "plot":
        plt.close(plot_graph(tensors["loss"], tensors).figure)
    else:
        flow = GradientFlow(tensors["loss"], tensors)
        flow.hooks = {"y": "double"}
        assert flow.error is None and set(flow.gradients) == {"x", "y", "loss"}


def test_what_hooks_of_ones_own_add_up_is_not_counted_again():
    total, x = torch.zeros(2), torch.ones(2, requires_grad=True)

    def add(grad: torch.Tensor) -> None:
        total.add_(grad)

    x.register_hook(add)
    loss = x.sum()
    flow = GradientFlow(loss, {"x": x})
    flow.hooks = {"x": "zero"}
    assert flow.error is None and total.tolist() == [0, 0]


def test_sparse_gradients_are_added_up_like_others():
    table = nn.Embedding(5, 3, sparse=True)
    one, two = table(torch.tensor([1, 2])), table(torch.tensor([2, 2]))
    loss = one.sum() + 2 * two.sum() + table.weight.sum()
    tensors = {"w": table.weight, "one": one, "two": two}
    flow = GradientFlow(loss, tensors)
    assert flow.error is None and flow.parts["w", "two"][:, 0].tolist() == [0, 0, 4, 0, 0]
    assert flow.gradients["w"][:, 0].tolist() == [1, 2, 6, 1, 1]
    flow.hooks = {"w": "double"}
    assert flow.error is None and flow.gradients["w"][:, 0].tolist() == [2, 4, 12, 2, 2]


def test_of_an_embedding_alone_the_gradient_stays_sparse_and_its_numbers_are_said():
    table = nn.Embedding(5, 3, sparse=True)
    loss = table(torch.tensor([0, 2])).sum()
    before = marks(table)
    flow = GradientFlow(loss, {"w": table.weight})
    assert flow.error is None and flow.gradients["w"].is_sparse
    assert flow._posted["run"][0]["content"]["nodes"]["w"]["grad"] == "5×3: 1, 1, …"
    assert same(before, marks(table))


def test_a_sparse_gradient_too_large_to_be_made_dense_is_told_without_its_parts():
    table = nn.Embedding(2_000_000, 1, sparse=True)
    one, two = table(torch.tensor([1])), table(torch.tensor([2]))
    flow = GradientFlow(one.sum() + two.sum(), {"w": table.weight, "one": one, "two": two})
    assert flow.error is None and flow.gradients["w"]._nnz() == 2
    assert ("w", "one") not in flow.parts and flow.parts["one", "loss"].tolist() == [[1.0]]


def test_it_may_be_made_in_inference_mode():
    x = torch.ones(2, requires_grad=True)
    loss = (2 * x).sum()
    with torch.inference_mode():
        flow = GradientFlow(loss, {"x": x})
    assert flow.error is None and flow.gradients["x"].tolist() == [2, 2]
