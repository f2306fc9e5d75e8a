"""What the sixth strangers tried on lesson 01: wrong answers that had been accepted, and a right one."""

from enum import StrEnum

from tests.answers import alternative, mistake


@alternative("01.1")
def classify(tensors):
    class Word(StrEnum):
        keeps = "keeps"
        passes = "passes"
        none = "none"

    kinds = {}
    for name, tensor in tensors.items():
        if not tensor.requires_grad:
            kinds[name] = Word.none
        else:
            kinds[name] = Word.keeps if tensor.is_leaf else Word.passes
    return kinds


@mistake("01.3", "hooks", points=2)
def keep_all(tensors, loss):
    for tensor in tensors.values():
        if tensor.requires_grad and not tensor.is_leaf:
            tensor.register_hook(lambda grad, tensor=tensor: setattr(tensor, "grad", grad))
    loss.backward()


@mistake("01.4", "leaves_a_rest", points=2)
def choose_vector(x, y, wanted):
    y.sum().backward(retain_graph=True)
    vector = wanted / x.grad
    x.grad.zero_()
    return vector
