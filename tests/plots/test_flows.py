"""What each path brought: the numbers on the backward arrows are true, or there are none."""

from itertools import pairwise

import pytest
import torch

from hookedu.plots.flows import brought


def leaf(value):
    return torch.tensor(float(value), requires_grad=True)


def told(edges, tensors, caught=None):
    """Return what is said of each arrow, "from > to" as backward goes; the output is the last of the tensors."""
    edges = [tuple(edge.split(" > "))[::-1] for edge in edges.split(", ")]
    found = brought(edges, [*tensors][::-1], tensors, caught or {})
    return {f"{target} > {source}": part.tolist() for (source, target), part in found.items()}


def two_paths(watch=lambda a, b: None, **options):
    """Run backward on the fork of lesson 01: y = (w + x) * (w + 1)."""
    w, x = leaf(1), leaf(2)
    a, b = w + x, w + 1
    watch(a, b)
    y = a * b
    y.backward(**options)
    return {"w": w, "x": x, "a": a, "b": b, "y": y}


FORK = "y > a, y > b, a > w, a > x, b > w"
ALL = {"y > a": 2.0, "y > b": 3.0, "a > w": 2.0, "a > x": 2.0, "b > w": 3.0}


def test_a_graph_that_is_still_there_tells_every_part():
    assert told(FORK, two_paths(retain_graph=True)) == ALL


def test_of_a_freed_graph_the_sums_tell_what_they_can():
    assert told(FORK, two_paths()) == {"a > x": 2.0}
    assert told(FORK, two_paths(lambda a, b: (a.retain_grad(), b.retain_grad()))) == ALL


def test_one_unknown_part_is_what_the_sum_lacks():
    x = leaf(2)
    square, double = x**2, x + x  # pow needs x, which is freed; add needs nothing
    y = square + double
    y.backward()
    tensors = {"x": x, "square": square, "double": double, "y": y}
    expected = {"y > square": 1.0, "y > double": 1.0, "square > x": 4.0, "double > x": 2.0}
    assert told("y > square, y > double, square > x, double > x", tensors) == expected


@pytest.mark.parametrize("retain_graph", [True, False])
def test_no_number_is_told_that_a_hook_has_made_wrong(retain_graph):
    """Lesson 03: the second hook on y stops the 5."""
    x, seen = leaf(2), {}
    y = x.view_as(x)
    y.register_hook(lambda grad: seen.update(y=grad))
    y.register_hook(lambda grad: grad * 0)
    three = 3 * x
    loss = three + 5 * y
    loss.backward(retain_graph=retain_graph)
    known = {"loss > three": 1.0, "loss > y": 5.0}
    if retain_graph:
        known |= {"three > x": 3.0, "y > x": 0.0}
    tensors = {"x": x, "three": three, "y": y, "loss": loss}
    assert told("loss > three, loss > y, three > x, y > x", tensors, seen) == known


def test_what_retain_grad_keeps_has_been_through_all_hooks():
    """Lesson 04: 3 leaves c, not 1."""
    a, b = leaf(7), leaf(13)
    c = a * b
    c.retain_grad()
    c.register_hook(lambda grad: grad + 2)
    c.backward()
    assert told("c > a, c > b", {"a": a, "b": b, "c": c}) == {"c > a": 39.0, "c > b": 21.0}


def test_a_hook_on_a_leaf_may_change_the_sum_but_not_what_arrived():
    x = leaf(2)
    x.register_hook(lambda grad: grad * 0)
    h, k = 3 * x, 5 * x
    y = h + k
    y.backward(retain_graph=True)
    assert told("y > h, y > k, h > x, k > x", {"x": x, "h": h, "k": k, "y": y})["h > x"] == 3.0


def test_after_a_second_pass_the_sums_contradict_and_nothing_is_reported():
    tensors = two_paths(retain_graph=True)
    tensors["y"].backward(retain_graph=True)
    assert told(FORK, tensors) == {}


def test_a_backward_of_another_gradient_than_1_is_not_told_as_1():
    assert told(FORK, two_paths(gradient=torch.tensor(10.0), retain_graph=True)) == {}


def test_no_hook_runs_and_no_gradient_changes():
    calls = []
    tensors = two_paths(lambda a, b: a.register_hook(calls.append), retain_graph=True)
    tensors["w"].register_hook(calls.append)
    tensors["y"].grad_fn.register_hook(lambda *_: calls.append(1))
    del calls[:]
    assert told(FORK, tensors) == ALL
    assert calls == [] and tensors["w"].grad.item() == 5


def test_somebodys_own_backward_is_not_run():
    class Double(torch.autograd.Function):
        runs = 0

        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, grad):
            Double.runs += 1
            return 2 * grad

    x = leaf(3)
    y = Double.apply(x) + x
    y.backward(retain_graph=True)
    assert told("y > x", {"x": x, "y": y}) == {"y > x": 3.0} and Double.runs == 1


def test_pieces_of_one_operation_and_unnamed_steps_between():
    x = torch.ones(4, requires_grad=True)
    first, second = (2 * x).chunk(2)
    y = (first * 3 * second.exp().log()).sum()
    y.backward(retain_graph=True)
    found = told(
        "y > first, y > second, first > x, second > x", {"x": x, "first": first, "second": second, "y": y}
    )
    assert found["y > first"] == [6, 6] and found["y > second"] == pytest.approx([6, 6])
    assert found["first > x"] == [12, 12, 0, 0] and found["second > x"] == pytest.approx([0, 0, 12, 12])


def test_a_tensor_used_twice_by_one_operation_and_a_leaf_without_a_name():
    x, other = leaf(3), leaf(4)
    y = x * x * other
    y.backward(retain_graph=True)
    assert told("y > x", {"x": x, "y": y}) == {"y > x": 24.0} and other.grad.item() == 9


def test_a_long_graph_is_left_alone():
    tensors = {"x": leaf(1)}
    for i in range(600):
        tensors[f"h{i}"] = [*tensors.values()][-1] * 1
    tensors["h599"].backward()
    names = [*tensors]
    assert told(", ".join(f"{b} > {a}" for a, b in pairwise(names)), tensors) == {}
