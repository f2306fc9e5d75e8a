"""What the seventh strangers tried on lesson 04: wrong answers that had been told something untrue."""

from torch import nn

from tests.answers import mistake, unnamed


@mistake("04.2", "removes_itself")
def sgd_in_backward(model, lr):
    handles = []

    def step(param):
        param.sub_(lr * param.grad)
        param.grad = None
        for handle in handles:
            handle.remove()

    for p in model.parameters():
        if p.requires_grad:
            handles.append(p.register_post_accumulate_grad_hook(step))
    return handles


@mistake("04.2", "replaces_parameters")
def sgd_in_backward(model, lr):
    def stepper(name):
        owner, _, last = name.rpartition(".")

        def step(param):
            setattr(model.get_submodule(owner), last, nn.Parameter(param.detach() - lr * param.grad))

        return step

    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    return [p.register_post_accumulate_grad_hook(stepper(name)) for name, p in named]


@unnamed("04.3", "freezes")
def freeze_rows(embedding, rows):
    def keep(grad):
        if not embedding.training:
            return None
        grad = grad.clone()
        grad[rows] = 0
        return grad

    return embedding.weight.register_hook(keep)
