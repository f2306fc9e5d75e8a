"""Answers to 04.1, `predict`."""

import torch

from tests.answers import alternative, mistake, unnamed


@alternative("04.1")
def predict(k, m, s):
    leaves_y = m + s
    return [m, leaves_y + leaves_y, leaves_y * k, (leaves_y + leaves_y) * k]


@alternative("04.1")
def predict(k, m, s):
    """Who runs it instead of predicting it has understood as well how to find out."""
    seen = {}
    w = torch.tensor(1.0, requires_grad=True)
    y = k * w
    y.register_hook(lambda grad: seen.update(look=grad))
    y.retain_grad()
    y.register_hook(lambda grad: grad + s)
    w.register_hook(lambda grad: seen.update(look_w=grad))
    for _ in range(2):
        (m * y).backward(retain_graph=True)
    return seen["look"], y.grad, seen["look_w"], w.grad


@mistake("04.1", "returns_nothing")
def predict(k, m, s):
    print(m, 2 * (m + s), k * (m + s), 2 * k * (m + s))


@mistake("04.1", "not_four_numbers")
def predict(k, m, s):
    return m, m + s, k * (m + s)


@mistake("04.1", "not_four_numbers")
def predict(k, m, s):
    return {"look": m, "y.grad": 2 * (m + s), "look_w": k * (m + s), "w.grad": 2 * k * (m + s)}


@mistake("04.1", "hook_sees_later_change", points=3)
def predict(k, m, s):
    return m + s, 2 * (m + s), k * (m + s), 2 * k * (m + s)


@mistake("04.1", "hook_adds_up", points=2)
def predict(k, m, s):
    return 2 * m, 2 * (m + s), 2 * k * (m + s), 2 * k * (m + s)


@mistake("04.1", "retain_before_hooks", points=3)
def predict(k, m, s):
    return m, 2 * m, k * (m + s), 2 * k * (m + s)


@mistake("04.1", "retain_one_pass", points=3)
def predict(k, m, s):
    return m, m + s, k * (m + s), 2 * k * (m + s)


@mistake("04.1", "adds_s_once", points=3)
def predict(k, m, s):
    return m, 2 * m + s, k * (m + s), 2 * k * (m + s)


@mistake("04.1", "adds_s_once", points=2)
def predict(k, m, s):
    return m, 2 * m + s, k * (m + s), k * (2 * m + s)


@mistake("04.1", "change_stays_on_y", points=2)
def predict(k, m, s):
    return m, 2 * (m + s), k * m, 2 * k * m


@mistake("04.1", "leaf_hook_adds_up", points=3)
def predict(k, m, s):
    return m, 2 * (m + s), 2 * k * (m + s), 2 * k * (m + s)


@mistake("04.1", "forgets_chain_rule", points=2)
def predict(k, m, s):
    return m, 2 * (m + s), m + s, 2 * (m + s)


@mistake("04.1", "post_one_pass", points=3)
def predict(k, m, s):
    return m, 2 * (m + s), k * (m + s), k * (m + s)


@mistake("04.1", "not_four_numbers")
def predict(k, m, s):
    return f"{m}, {2 * (m + s)}, {k * (m + s)}, {2 * k * (m + s)}"


@unnamed("04.1", "value_1", points=2)
def predict(k, m, s):
    return 2 * (m + s), m, k * (m + s), 2 * k * (m + s)


@unnamed("04.1", "value_2", points=2)
def predict(k, m, s):
    return m, 2 * (m + abs(s)), k * (m + s), 2 * k * (m + abs(s))


@unnamed("04.1", "value_1")
def predict(k, m, s):
    return 5, 12, 18, 36
