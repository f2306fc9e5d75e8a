"""Answers to 01.1, `classify`."""

from torch import nn

from tests.answers import alternative, mistake, unnamed


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


@mistake("01.1", "asks_grad_now")
def classify(tensors):
    return {
        n: "none" if not t.requires_grad else "keeps" if t.grad is not None else "passes"
        for n, t in tensors.items()
    }


@mistake("01.1", "parameters_only")
def classify(tensors):
    kinds = {}
    for name, tensor in tensors.items():
        if isinstance(tensor, nn.Parameter) and tensor.requires_grad:
            kinds[name] = "keeps"
        else:
            kinds[name] = "passes" if tensor.requires_grad else "none"
    return kinds


@mistake("01.1", "argument", points=2)
def classify(tensors):
    for name, tensor in tensors.items():
        tensors[name] = ("keeps" if tensor.is_leaf else "passes") if tensor.requires_grad else "none"
    return tensors


@mistake("01.1", "wrong_words")
def classify(tensors):
    return {n: ("keep" if t.is_leaf else "pass") if t.requires_grad else None for n, t in tensors.items()}


@mistake("01.1", "misses_some")
def classify(tensors):
    return {name: "keeps" for name, t in tensors.items() if t.requires_grad and t.is_leaf}


@unnamed("01.1", "right")
def classify(tensors):
    return dict.fromkeys(tensors, "keeps")


@unnamed("01.1", "right")
def classify(tensors):
    kinds = {}
    for name, tensor in tensors.items():
        if tensor.grad_fn is not None:
            kinds[name] = "passes"
        else:  # a frozen parameter keeps nothing
            kinds[name] = "keeps" if tensor.requires_grad or isinstance(tensor, nn.Parameter) else "none"
    return kinds


@unnamed("01.1", "right")
def classify(tensors):
    kinds = {}
    for name, tensor in tensors.items():
        if tensor.grad is not None or (tensor.requires_grad and tensor.is_leaf):
            kinds[name] = "keeps"
        else:
            kinds[name] = "passes" if tensor.requires_grad else "none"
    return kinds


@unnamed("01.1", "right")
def classify(tensors):
    kinds = {}
    for name, tensor in tensors.items():
        if tensor._base is not None:  # "a view is no tensor of its own"
            kinds[name] = "none"
        elif tensor.requires_grad:
            kinds[name] = "keeps" if tensor.is_leaf else "passes"
        else:
            kinds[name] = "none"
    return kinds


@unnamed("01.1", "untouched")
def classify(tensors):
    kinds = {}
    for name, tensor in tensors.items():
        kinds[name] = (
            "keeps"
            if tensor.is_leaf and tensor.requires_grad
            else "passes"
            if tensor.requires_grad
            else "none"
        )
        if tensor.is_leaf:
            tensor.requires_grad_(False)
    return kinds


@unnamed("01.1", "right")
def classify(tensors):
    kinds = {"total": len(tensors)}
    for name, tensor in tensors.items():
        kinds[name] = (
            "keeps"
            if tensor.is_leaf and tensor.requires_grad
            else "passes"
            if tensor.requires_grad
            else "none"
        )
    return kinds
