"""What the tenth strangers tried on lesson 01."""

from tests.answers import mistake, unnamed


@mistake("01.1", "misses_some")
def classify(tensors):
    def word(tensor):
        return ("keeps" if tensor.is_leaf else "passes") if tensor.requires_grad else "none"

    return {name: word(tensor) for name, tensor in tensors.items() if tensor.is_floating_point()}


@unnamed("01.1", "right")
def classify(tensors):
    def word(tensor):
        computed = tensor.grad_fn is not None or tensor._base is not None
        return ("passes" if computed else "keeps") if tensor.requires_grad else "none"

    return {name: word(tensor) for name, tensor in tensors.items()}


@mistake("01.2", "only_first")
def sum_gradients(w, losses):
    w.grad = None
    for loss in losses:
        try:
            loss.backward()
        except RuntimeError:
            pass


@mistake("01.3", "others", points=2)
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.retain_grad()
    loss.backward()
    for tensor in tensors.values():
        if tensor._backward_hooks:
            tensor._backward_hooks.clear()
