"""Answers to 01.4, `choose_vector`."""

import torch

from tests.answers import alternative, mistake, unnamed


@alternative("01.4")
def choose_vector(x, y, wanted):
    y.backward(torch.ones_like(y), retain_graph=True)
    slope = x.grad
    x.grad = None
    return wanted / slope


@alternative("01.4")
def choose_vector(x, y, wanted):
    y.sum().backward(retain_graph=True)
    vector = wanted / x.grad
    del x.grad
    return vector


@alternative("01.4")
def choose_vector(x, y, wanted):
    rows = [torch.autograd.grad(y[i], x, retain_graph=True)[0] for i in range(len(y))]
    return torch.linalg.solve(torch.stack(rows).T, wanted)


@mistake("01.4", "returns_wanted")
def choose_vector(x, y, wanted):
    return wanted


@mistake("01.4", "multiplies")
def choose_vector(x, y, wanted):
    (slope,) = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)
    return wanted * slope


@mistake("01.4", "upside_down")
def choose_vector(x, y, wanted):
    (slope,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
    return slope / wanted


@mistake("01.4", "only_ones")
def choose_vector(x, y, wanted):
    return torch.ones_like(wanted)


@mistake("01.4", "returns_slope")
def choose_vector(x, y, wanted):
    return torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)[0]


@mistake("01.4", "guesses_formula")
def choose_vector(x, y, wanted):
    return wanted / (2 * x)


@mistake("01.4", "leaves_a_rest")
def choose_vector(x, y, wanted):
    y.backward(torch.ones_like(y), retain_graph=True)
    return wanted / x.grad


@mistake("01.4", "runs_backward")
def choose_vector(x, y, wanted):
    (slope,) = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)
    v = wanted / slope
    y.backward(v, retain_graph=True)
    return v


@mistake("01.4", "frees_graph")
def choose_vector(x, y, wanted):
    (slope,) = torch.autograd.grad(y, x, torch.ones_like(y))
    return wanted / slope


@mistake("01.4", "needs_a_vector")
def choose_vector(x, y, wanted):
    y.backward(retain_graph=True)
    return wanted / x.grad


@mistake("01.4", "three_ones")
def choose_vector(x, y, wanted):
    (slope,) = torch.autograd.grad(y, x, torch.ones(3), retain_graph=True)
    return wanted / slope


@mistake("01.4", "three_ones")
def choose_vector(x, y, wanted):
    y.backward(torch.ones(3), retain_graph=True)
    slope, x.grad = x.grad, None
    return wanted / slope


@mistake("01.4", "divides_by_tuple")
def choose_vector(x, y, wanted):
    return wanted / torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)


@mistake("01.4", "divides_by_tuple")
def choose_vector(x, y, wanted):
    slope = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)
    return slope / wanted


@mistake("01.4", "divides_by_zero")
def choose_vector(x, y, wanted):
    y.backward(torch.ones_like(y), retain_graph=True)
    s = x.grad
    x.grad.zero_()
    return wanted / s


@mistake("01.4", "wrong_shape")
def choose_vector(x, y, wanted):
    (slope,) = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)
    return (wanted / slope).sum()


@mistake("01.4", "not_a_tensor")
def choose_vector(x, y, wanted):
    (slope,) = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)
    return [float(a / b) for a, b in zip(wanted, slope, strict=True)]


@mistake("01.4", "returns_nothing")
def choose_vector(x, y, wanted):
    (slope,) = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)
    v = wanted / slope


@unnamed("01.4", "yields")
def choose_vector(x, y, wanted):
    (slope,) = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)
    return wanted // slope


@unnamed("01.4", "yields")
def choose_vector(x, y, wanted):
    (slope,) = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)
    return wanted / slope.abs()


@unnamed("01.4", "yields")
def choose_vector(x, y, wanted):
    (slope,) = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)
    return (wanted / slope).round()


@unnamed("01.4", "yields")
def choose_vector(x, y, wanted):
    (slope,) = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)
    return wanted / slope.mean()


@unnamed("01.4", "yields")
def choose_vector(x, y, wanted):
    (slope,) = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)
    return -wanted / slope


@unnamed("01.4", "yields")
def choose_vector(x, y, wanted):  # right for x**2 only
    return wanted * x / (2 * y)


@unnamed("01.4", "yields")
def choose_vector(x, y, wanted):
    (slope,) = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)
    v = wanted / slope
    v[wanted == 0] = 1.0
    return v


@mistake("01.4", "argument", points=2)
def choose_vector(x, y, wanted):
    (slope,) = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)
    wanted /= slope
    return wanted


@mistake("01.4", "divides_by_zero")
def choose_vector(x, y, wanted):
    return wanted / torch.zeros_like(x)


@mistake("01.4", "not_a_tensor")
def choose_vector(x, y, wanted):
    return torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)


@mistake("01.4", "leaves_a_rest")
def choose_vector(x, y, wanted):
    y.sum().backward(retain_graph=True)
    slope = x.grad.clone()
    return wanted / slope


@mistake("01.4", "frees_graph")
def choose_vector(x, y, wanted):
    y.sum().backward()
    slope, x.grad = x.grad, None
    return wanted / slope


@unnamed("01.4", "yields")
def choose_vector(x, y, wanted):
    (slope,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
    x.requires_grad_(False)
    return wanted / slope
