"""Right answers to 01.1, `classify`, in further styles."""

from collections import OrderedDict, UserDict, defaultdict
from functools import partial, reduce, singledispatch
from operator import attrgetter

import torch

from tests.answers import alternative


@alternative("01.1")
def classify(tensors):
    kinds = defaultdict(lambda: "none")
    for name, tensor in tensors.items():
        if not tensor.requires_grad:
            kinds[name]
        elif tensor.is_leaf:
            kinds[name] = "keeps"
        else:
            kinds[name] = "passes"
    return kinds


@alternative("01.1")
def classify(tensors):
    return OrderedDict(
        (name, "none" if not t.requires_grad else "passes" if t.grad_fn else "keeps")
        for name, t in sorted(tensors.items())
    )


@alternative("01.1")
def classify(tensors):
    class Kinds(dict):
        def __missing__(self, name):
            flags = (tensors[name].requires_grad, tensors[name].is_leaf)
            self[name] = {(True, True): "keeps", (True, False): "passes"}.get(flags, "none")
            return self[name]

    kinds = Kinds()
    for name in tensors:
        kinds[name]
    return kinds


@alternative("01.1")
def classify(tensors):
    words = ["none", "passes", "keeps"]
    return {name: words[t.requires_grad + (t.requires_grad and t.is_leaf)] for name, t in tensors.items()}


@alternative("01.1")
def classify(tensors):
    flags = attrgetter("requires_grad", "is_leaf")

    def word(tensor):
        match flags(tensor):
            case (False, _):
                return "none"
            case (True, True):
                return "keeps"
        return "passes"

    return dict(zip(tensors, map(word, tensors.values()), strict=True))


@alternative("01.1")
def classify(tensors):
    def add(kinds, item):
        name, tensor = item
        return kinds | {name: ("passes", "keeps")[tensor.is_leaf] if tensor.requires_grad else "none"}

    return reduce(add, tensors.items(), {})


@alternative("01.1")
class Classify:
    def __new__(cls, tensors):
        self = super().__new__(cls)
        return {name: self.word(tensor) for name, tensor in tensors.items()}

    def word(self, tensor):
        if not tensor.requires_grad:
            return "none"
        return "keeps" if tensor.is_leaf else "passes"


@alternative("01.1")
def classify(tensors):
    kinds = {}
    grouped = {"none": [], "passes": [], "keeps": []}
    for name, tensor in tensors.items():
        grouped["none" if not tensor.requires_grad else "keeps" if tensor.is_leaf else "passes"].append(name)
    for kind, names in grouped.items():
        kinds.update(dict.fromkeys(names, kind))
    return kinds


@alternative("01.1")
def classify(tensors):
    def pairs():
        for name, tensor in tensors.items():
            if not (needs := tensor.requires_grad):
                yield name, "none"
            elif needs and tensor.is_leaf:
                yield name, "keeps"
            else:
                yield name, "passes"

    return dict(pairs())


@alternative("01.1")
def classify(tensors):
    @singledispatch
    def word(tensor, leaf="keeps", other="passes"):
        if not tensor.requires_grad:
            return "none"
        return leaf if tensor.is_leaf else other

    kind = partial(word, other="passes")
    kinds = UserDict()
    for name in list(tensors):
        kinds[name] = kind(tensors[name])
    return kinds.data


@alternative("01.1")
def classify(tensors):
    kinds = {}
    for name, tensor in tensors.items():
        try:
            torch.autograd.grad(tensor.sum(), tensor)
        except RuntimeError:  # it refuses what requires no gradient
            kinds[name] = "none"
        else:
            kinds[name] = "keeps" if tensor.is_leaf else "passes"
    return kinds
