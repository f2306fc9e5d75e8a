"""Right and wrong answers to the exercises of lesson 01."""

import torch
from torch import nn

from tests.answers import alternative, mistake

# --- 01.1 ---------------------------------------------------------------------------------------------------


@alternative("01.1")
def classify(tensors):
    def word(t):
        return ("keeps" if t.is_leaf else "passes") if t.requires_grad else "none"

    return {name: word(t) for name, t in tensors.items()}


@alternative("01.1")
def classify(tensors):
    kinds = dict.fromkeys(tensors, "none")
    for name, tensor in tensors.items():
        if tensor.grad_fn is not None:
            kinds[name] = "passes"
        elif tensor.requires_grad:
            kinds[name] = "keeps"
    return kinds


@mistake("01.1", "leaf_is_enough")
def classify(tensors):
    return {name: "keeps" if t.is_leaf else "passes" for name, t in tensors.items()}


@mistake("01.1", "leaf_is_enough")
def classify(tensors):
    kinds = {}
    for name, tensor in tensors.items():
        if tensor.is_leaf:
            kinds[name] = "keeps"
        elif tensor.requires_grad:
            kinds[name] = "passes"
        else:
            kinds[name] = "none"
    return kinds


@mistake("01.1", "flag_is_enough")
def classify(tensors):
    return {name: "keeps" if t.requires_grad else "none" for name, t in tensors.items()}


@mistake("01.1", "swaps_two")
def classify(tensors):
    kinds = {}
    for name, tensor in tensors.items():
        if not tensor.requires_grad:
            kinds[name] = "none"
        else:
            kinds[name] = "passes" if tensor.is_leaf else "keeps"
    return kinds


@mistake("01.1", "swaps_two")
def classify(tensors):
    return {name: "passes" if t.is_leaf else "keeps" for name, t in tensors.items()}


@mistake("01.1", "forgets_none")
def classify(tensors):
    return {name: "keeps" if t.requires_grad and t.is_leaf else "passes" for name, t in tensors.items()}


@mistake("01.1", "asks_grad_now")
def classify(tensors):
    kinds = {}
    for name, tensor in tensors.items():
        if not tensor.requires_grad:
            kinds[name] = "none"
        else:
            kinds[name] = "keeps" if tensor.grad is not None else "passes"
    return kinds


@mistake("01.1", "parameters_only")
def classify(tensors):
    kinds = {}
    for name, tensor in tensors.items():
        if isinstance(tensor, nn.Parameter):
            kinds[name] = "keeps"
        else:
            kinds[name] = "passes" if tensor.requires_grad else "none"
    return kinds


@mistake("01.1", "wrong_words")
def classify(tensors):
    return {name: t.requires_grad and t.is_leaf for name, t in tensors.items()}


@mistake("01.1", "wrong_words")
def classify(tensors):
    return {name: [t.requires_grad, t.is_leaf] for name, t in tensors.items()}


@mistake("01.1", "misses_some")
def classify(tensors):
    kinds = {}
    for name, tensor in tensors.items():
        if tensor.requires_grad:
            kinds[name] = "keeps" if tensor.is_leaf else "passes"
        else:
            kinds[name] = "none"
        return kinds


@mistake("01.1", "misses_some")
def classify(tensors):
    return {n: "keeps" if t.is_leaf else "passes" for n, t in tensors.items() if t.requires_grad}


@mistake("01.1", "not_a_dict")
def classify(tensors):
    return ["keeps" if t.is_leaf and t.requires_grad else "none" for t in tensors.values()]


@mistake("01.1", "changes_tensors")
def classify(tensors):
    return {name: "keeps" if t.requires_grad_().is_leaf else "passes" for name, t in tensors.items()}


# --- 01.2 ---------------------------------------------------------------------------------------------------


@alternative("01.2")
def sum_gradients(w, losses):
    w.grad = None
    sum(losses).backward()


@alternative("01.2")
def sum_gradients(w, losses):
    if w.grad is not None:
        w.grad.zero_()
    for i, loss in enumerate(losses):
        loss.backward(retain_graph=i < len(losses) - 1)
    return w.grad


@alternative("01.2")
def sum_gradients(w, losses):
    (w.grad,) = torch.autograd.grad(torch.stack(losses).sum(), w)


@mistake("01.2", "keeps_old", points=2)
def sum_gradients(w, losses):
    for loss in losses:
        loss.backward(retain_graph=True)


@mistake("01.2", "zeroes_each")
def sum_gradients(w, losses):
    for loss in losses:
        w.grad = None
        loss.backward(retain_graph=True)


@mistake("01.2", "zeroes_after")
def sum_gradients(w, losses):
    for loss in losses:
        loss.backward(retain_graph=True)
    w.grad.zero_()


@mistake("01.2", "only_first")
def sum_gradients(w, losses):
    w.grad = None
    for loss in losses:
        loss.backward(retain_graph=True)
        return w.grad


@mistake("01.2", "averages")
def sum_gradients(w, losses):
    w.grad = None
    (sum(losses) / len(losses)).backward()


@mistake("01.2", "adds_twice")
def sum_gradients(w, losses):
    w.grad = None
    total = torch.zeros_like(w)
    for loss in losses:
        loss.backward(retain_graph=True)
        total += w.grad
    w.grad = total


@mistake("01.2", "adds_twice")
def sum_gradients(w, losses):
    grads = []
    w.grad = None
    for loss in losses:
        loss.backward(retain_graph=True)
        grads.append(w.grad)
    w.grad = sum(grads)


@mistake("01.2", "returns_instead")
def sum_gradients(w, losses):
    return torch.autograd.grad(sum(losses), w)


@mistake("01.2", "no_backward")
def sum_gradients(w, losses):
    w.grad = None
    return sum(losses)


@mistake("01.2", "no_backward")
def sum_gradients(w, losses):
    for loss in losses:
        loss.backward(retain_graph=True)
    w.grad = None


@mistake("01.2", "frees_graph")
def sum_gradients(w, losses):
    w.grad = None
    for loss in losses:
        loss.backward()


@mistake("01.2", "zeroes_none")
def sum_gradients(w, losses):
    w.grad.zero_()
    for loss in losses:
        loss.backward(retain_graph=True)


@mistake("01.2", "assigns_number")
def sum_gradients(w, losses):
    w.grad = 0
    for loss in losses:
        loss.backward(retain_graph=True)


# --- 01.3 ---------------------------------------------------------------------------------------------------


@alternative("01.3")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad and not tensor.is_leaf:
            tensor.retain_grad()
    loss.backward(retain_graph=True)
    return {name: tensor.grad for name, tensor in tensors.items()}


@alternative("01.3")
def keep_all(tensors, loss):
    needed = [t for t in tensors.values() if t.requires_grad]
    for tensor, grad in zip(needed, torch.autograd.grad(loss, needed), strict=True):
        tensor.grad = grad


@alternative("01.3")
def keep_all(tensors, loss):
    def store(tensor):
        def keep(grad):
            tensor.grad = grad

        return keep

    for tensor in tensors.values():
        if tensor.grad_fn is not None:
            tensor.register_hook(store(tensor))
    loss.backward()


@mistake("01.3", "leaves_only")
def keep_all(tensors, loss):
    loss.backward()


@mistake("01.3", "leaves_only")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.requires_grad_()
    loss.backward()


@mistake("01.3", "retains_too_late")
def keep_all(tensors, loss):
    loss.backward()
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.retain_grad()


@mistake("01.3", "misses_some")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad and not tensor.is_leaf:
            tensor.retain_grad()
            break
    loss.backward()


@mistake("01.3", "backward_in_loop")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.retain_grad()
            loss.backward(retain_graph=True)


@mistake("01.3", "backward_in_loop")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.retain_grad()
            loss.backward()


@mistake("01.3", "no_backward")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.retain_grad()


@mistake("01.3", "retains_data")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        tensor.retain_grad()
    loss.backward()


@mistake("01.3", "changes_data")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        tensor.requires_grad_().retain_grad()
    loss.backward()


@mistake("01.3", "works_on_copies")
def keep_all(tensors, loss):
    for name in tensors:
        tensors[name] = tensors[name].detach().requires_grad_()
    loss.backward()


@mistake("01.3", "uses_the_return")
def keep_all(tensors, loss):
    kept = [t.retain_grad() for t in tensors.values() if t.requires_grad]
    loss.backward()
    return [t.grad for t in kept]


# --- 01.4 ---------------------------------------------------------------------------------------------------


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
    x.grad.zero_()
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
