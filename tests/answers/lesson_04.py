"""Right and wrong answers to the exercises of lesson 04."""

from functools import partial

import torch
from torch.autograd.graph import register_multi_grad_hook

from tests.answers import alternative, mistake

# --- 04.1 ---------------------------------------------------------------------------------------------------


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


# --- 04.2 ---------------------------------------------------------------------------------------------------


@alternative("04.2")
def sgd_in_backward(model, lr):
    def step(param):
        param.data.add_(param.grad, alpha=-lr)
        param.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@alternative("04.2")
def sgd_in_backward(model, lr):
    """As the tutorial does it: one optimizer a parameter."""
    handles, optimizers = [], {}
    for param in model.parameters():
        if not param.requires_grad:
            continue
        optimizers[param] = torch.optim.SGD([param], lr=lr)

        def step(param):
            optimizers[param].step()
            optimizers[param].zero_grad()

        handles.append(param.register_post_accumulate_grad_hook(step))
    return handles


@alternative("04.2")
def sgd_in_backward(model, lr):
    def step(param):  # grad mode is off during backward
        param -= lr * param.grad
        param.grad = None

    handles = []
    for param in filter(lambda p: p.requires_grad, model.parameters()):
        handles += [param.register_post_accumulate_grad_hook(step)]
    return tuple(handles)


@alternative("04.2")
def sgd_in_backward(model, lr):
    def step(param):
        with torch.no_grad():
            param.copy_(param - lr * param.grad)
        del param.grad

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@mistake("04.2", "no_handles", points=4)
def sgd_in_backward(model, lr):
    def step(param):
        param.data.add_(param.grad, alpha=-lr)
        param.grad = None

    handles = []
    for param in model.parameters():
        if param.requires_grad:
            param.register_post_accumulate_grad_hook(step)
            handles.append(param.register_hook(lambda grad: None))
    for handle in handles:
        handle.remove()
    return handles


@mistake("04.2", "not_registered")
def sgd_in_backward(model, lr):
    def step(param):
        param.data -= lr * param.grad
        param.grad = None

    return [step for param in model.parameters()]


@mistake("04.2", "rebinds_param")
def sgd_in_backward(model, lr):
    def step(param):
        param = param - lr * param.grad
        param.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@mistake("04.2", "takes_param_for_gradient")
def sgd_in_backward(model, lr):
    handles = []
    for param in model.parameters():
        if param.requires_grad:

            def step(grad, param=param):
                with torch.no_grad():
                    param -= lr * grad
                param.grad = None

            handles.append(param.register_post_accumulate_grad_hook(step))
    return handles


@mistake("04.2", "wrong_sign")
def sgd_in_backward(model, lr):
    def step(param):
        param.data += lr * param.grad
        param.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@mistake("04.2", "late_binding")
def sgd_in_backward(model, lr):
    handles = []
    for param in model.parameters():
        if param.requires_grad:

            def step(_):  # the last parameter is the first to get its gradient, so this does not even fail
                param.data -= lr * param.grad

            handles.append(param.register_post_accumulate_grad_hook(step))
    return handles


@mistake("04.2", "steps_at_once")
def sgd_in_backward(model, lr):
    for param in model.parameters():
        param.data -= lr * param.data


@mistake("04.2", "keeps_grad", points=3)
def sgd_in_backward(model, lr):
    def step(param):
        with torch.no_grad():
            param -= lr * param.grad

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@mistake("04.2", "tensor_hook", points=4)
def sgd_in_backward(model, lr):
    handles = []
    for param in model.parameters():
        if param.requires_grad:

            def step(grad, param=param):
                param.data -= lr * grad
                param.grad = None

            handles.append(param.register_hook(step))
    return handles


@mistake("04.2", "zeroes_grad", points=4)
def sgd_in_backward(model, lr):
    def step(param):
        param.data -= lr * param.grad
        param.grad.zero_()

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@mistake("04.2", "frees_at_the_end", points=4)
def sgd_in_backward(model, lr):
    ps = [p for p in model.parameters() if p.requires_grad]
    n = 0

    def step(param):
        nonlocal n
        n += 1
        if n % len(ps) == 0:
            for p in ps:
                p -= lr * p.grad
                p.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in ps]


@mistake("04.2", "calls_now")
def sgd_in_backward(model, lr):
    def step(param):
        pass

    return [p.register_post_accumulate_grad_hook(step(p)) for p in model.parameters() if p.requires_grad]


@mistake("04.2", "no_argument")
def sgd_in_backward(model, lr):
    def step():
        model.zero_grad()

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@mistake("04.2", "hooks_frozen")
def sgd_in_backward(model, lr):
    def step(param):
        param.data -= lr * param.grad
        param.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters()]


@mistake("04.2", "no_handles", points=4)
def sgd_in_backward(model, lr):
    def step(param):
        param.data -= lr * param.grad
        param.grad = None

    for param in model.parameters():
        if param.requires_grad:
            param.register_post_accumulate_grad_hook(step)


@mistake("04.2", "no_handles", points=4)
def sgd_in_backward(model, lr):
    def step(param):
        param.data -= lr * param.grad
        param.grad = None

    for param in model.parameters():
        if param.requires_grad:
            handle = param.register_post_accumulate_grad_hook(step)
    return handle


@mistake("04.2", "returns_from_hook")
def sgd_in_backward(model, lr):
    return [
        p.register_post_accumulate_grad_hook(lambda param: param.data.sub_(lr * param.grad))
        for p in model.parameters()
        if p.requires_grad
    ]


@mistake("04.2", "grad_is_none")
def sgd_in_backward(model, lr):
    handles = []
    for param in model.parameters():
        if param.requires_grad:

            def step(grad, param=param):
                param.data -= lr * param.grad
                param.grad = None

            handles.append(param.register_hook(step))
    return handles


@mistake("04.2", "grad_is_none")
def sgd_in_backward(model, lr):
    handles = []
    for param in model.parameters():
        if param.requires_grad:

            def step(_):
                param.data.add_(param.grad, alpha=-lr)
                param.grad = None

            handles.append(param.register_post_accumulate_grad_hook(step))
    return handles


@mistake("04.2", "returns_from_hook")
def sgd_in_backward(model, lr):
    return [
        p.register_post_accumulate_grad_hook(
            lambda param: (param.sub_(lr * param.grad), setattr(param, "grad", None))
        )
        for p in model.parameters()
        if p.requires_grad
    ]


@mistake("04.2", "keeps_grad", points=3)
def sgd_in_backward(model, lr):
    """The hook returns the parameter itself, which PyTorch lets through."""
    return [
        p.register_post_accumulate_grad_hook(lambda param: param.sub_(lr * param.grad))
        for p in model.parameters()
        if p.requires_grad
    ]


@mistake("04.2", "grad_is_none")
def sgd_in_backward(model, lr):
    for param in model.parameters():
        param.data -= lr * param.grad


# --- 04.3 ---------------------------------------------------------------------------------------------------


@alternative("04.3")
def freeze_rows(embedding, rows):
    def freeze(grad):
        return grad.index_fill(0, torch.tensor(rows), 0.0)

    return embedding.weight.register_hook(freeze)


@alternative("04.3")
def freeze_rows(embedding, rows):
    learn = torch.ones(embedding.num_embeddings, 1)
    learn[rows] = 0
    return embedding.weight.register_hook(lambda grad: grad * learn)


@alternative("04.3")
def freeze_rows(embedding, rows):
    def freeze(grad):
        new = torch.zeros_like(grad)
        for row in range(len(grad)):
            if row not in rows:
                new[row] = grad[row]
        return new

    handle = embedding.weight.register_hook(freeze)
    return handle


@mistake("04.3", "forgot_return")
def freeze_rows(embedding, rows):
    def freeze(grad):
        grad = grad.clone()
        grad[rows] = 0

    return embedding.weight.register_hook(freeze)


@mistake("04.3", "hooks_another_tensor")
def freeze_rows(embedding, rows):
    return embedding.weight[rows].register_hook(lambda grad: torch.zeros_like(grad))


@mistake("04.3", "freezes_the_others")
def freeze_rows(embedding, rows):
    def freeze(grad):
        new = torch.zeros_like(grad)
        new[rows] = grad[rows]
        return new

    return embedding.weight.register_hook(freeze)


@mistake("04.3", "zeroes_columns")
def freeze_rows(embedding, rows):
    def freeze(grad):
        grad = grad.clone()
        grad[:, rows] = 0
        return grad

    return embedding.weight.register_hook(freeze)


@mistake("04.3", "freezes_a_slice")
def freeze_rows(embedding, rows):
    def freeze(grad):
        grad = grad.clone()
        grad[rows[0] : rows[-1] + 1] = 0
        return grad

    return embedding.weight.register_hook(freeze)


@mistake("04.3", "freezes_a_slice")
def freeze_rows(embedding, rows):
    def freeze(grad):
        grad = grad.clone()
        grad[min(rows) : max(rows) + 1] = 0
        return grad

    return embedding.weight.register_hook(freeze)


@mistake("04.3", "late_binding")
def freeze_rows(embedding, rows):
    for r in rows:

        def freeze(grad):
            grad = grad.clone()
            grad[r] = 0
            return grad

        handle = embedding.weight.register_hook(freeze)
    return handle


@mistake("04.3", "hooks_stay", points=4)
def freeze_rows(embedding, rows):
    for r in rows:

        def freeze(grad, r=r):
            grad = grad.clone()
            grad[r] = 0
            return grad

        handle = embedding.weight.register_hook(freeze)
    return handle


@mistake("04.3", "zeroes_everything")
def freeze_rows(embedding, rows):
    return embedding.weight.register_hook(lambda grad: grad * 0)


@mistake("04.3", "freezes_everything")
def freeze_rows(embedding, rows):
    embedding.weight.requires_grad_(False)


@mistake("04.3", "freezes_everything")
def freeze_rows(embedding, rows):
    embedding.weight.requires_grad = False
    embedding.weight[rows].requires_grad = False


@mistake("04.3", "requires_grad_on_rows")
def freeze_rows(embedding, rows):
    for row in rows:
        embedding.weight[row].requires_grad = False


@mistake("04.3", "zeroes_the_weight")
def freeze_rows(embedding, rows):
    with torch.no_grad():
        embedding.weight[rows] = 0


@mistake("04.3", "hooks_the_module")
def freeze_rows(embedding, rows):
    def freeze(grad):
        grad = grad.clone()
        grad[rows] = 0
        return grad

    return embedding.register_hook(freeze)


@mistake("04.3", "asks_too_early")
def freeze_rows(embedding, rows):
    embedding.weight.grad[rows] = 0


@mistake("04.3", "post_accumulate", points=4)
def freeze_rows(embedding, rows):
    def freeze(param):
        param.grad[rows] = 0

    return embedding.weight.register_post_accumulate_grad_hook(freeze)


@mistake("04.3", "changes_in_place", points=4)
def freeze_rows(embedding, rows):
    def freeze(grad):
        grad[rows] = 0

    return embedding.weight.register_hook(freeze)


@mistake("04.3", "changes_in_place", points=4)
def freeze_rows(embedding, rows):
    def freeze(grad):
        grad[rows] = 0
        return grad

    return embedding.weight.register_hook(freeze)


@mistake("04.3", "calls_now")
def freeze_rows(embedding, rows):
    def freeze(weight):
        weight[rows]

    return embedding.weight.register_hook(freeze(embedding.weight))


@mistake("04.3", "no_argument")
def freeze_rows(embedding, rows):
    def freeze():
        embedding.weight.grad[rows] = 0

    return embedding.weight.register_hook(freeze)


@mistake("04.3", "passes_tensor")
def freeze_rows(embedding, rows):
    def freeze(grad):
        grad = grad.clone()
        grad[rows] = 0
        return grad

    return embedding.weight.register_hook(freeze(embedding.weight))


@mistake("04.3", "two_arguments")
def freeze_rows(embedding, rows):
    def freeze(grad, rows):
        grad = grad.clone()
        grad[rows] = 0
        return grad

    return embedding.weight.register_hook(freeze)


@mistake("04.3", "no_handle", points=4)
def freeze_rows(embedding, rows):
    def freeze(grad):
        grad = grad.clone()
        grad[rows] = 0
        return grad

    embedding.weight.register_hook(freeze)


# --- 04.4 ---------------------------------------------------------------------------------------------------


@alternative("04.4")
def watch_norms(model, seen):
    def noter(name):
        return lambda grad: seen.append((name, grad.square().sum().sqrt().item()))

    return [p.register_hook(noter(name)) for name, p in model.named_parameters() if p.requires_grad]


@alternative("04.4")
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, torch.linalg.vector_norm(grad).item()))

    handles = []
    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(param.register_hook(partial(note, name)))
    return handles


@alternative("04.4")
def watch_norms(model, seen):
    """A post-accumulate hook may do it too, if it takes away what was there before."""
    names = {param: name for name, param in model.named_parameters()}
    before = {}

    def note(param):
        this_pass = param.grad - before.get(param, 0)
        before[param] = param.grad.clone()
        seen.append([names[param], float(this_pass.norm())])

    return [p.register_post_accumulate_grad_hook(note) for p in names if p.requires_grad]


@mistake("04.4", "asks_too_early")
def watch_norms(model, seen):
    for name, param in model.named_parameters():
        seen.append((name, param.norm().item()))


@mistake("04.4", "not_registered")
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, grad.norm().item()))

    return [partial(note, name) for name, p in model.named_parameters()]


@mistake("04.4", "rebinds_list")
def watch_norms(model, seen):
    def note(name, grad):
        seen = [(name, grad.norm().item())]

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "no_pairs")
def watch_norms(model, seen):
    def note(grad):
        seen.append(grad.norm().item())

    return [p.register_hook(note) for p in model.parameters() if p.requires_grad]


@mistake("04.4", "model_order", points=3)
def watch_norms(model, seen):
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}

    def note(grads):
        for name, grad in zip(trained, grads, strict=True):
            seen.append((name, grad.norm().item()))

    return register_multi_grad_hook(tuple(trained.values()), note)


@mistake("04.4", "model_order", points=4)
def watch_norms(model, seen):
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}

    def note(grads):
        seen.extend((name, grad.norm().item()) for name, grad in zip(trained, grads, strict=True))

    return [register_multi_grad_hook(tuple(trained.values()), note)]


@mistake("04.4", "norm_of_the_sum", points=4)
def watch_norms(model, seen):
    handles = []
    for name, param in model.named_parameters():
        if param.requires_grad:

            def note(param, name=name):
                seen.append((name, param.grad.norm().item()))

            handles.append(param.register_post_accumulate_grad_hook(note))
    return handles


@mistake("04.4", "keeps_gradients", points=4)
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, grad))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "keeps_tensors", points=4)
def watch_norms(model, seen):
    def note(name, g):
        seen.append((name, g.norm()))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "norm_of_the_parameter", points=4)
def watch_norms(model, seen):
    handles = []
    for name, p in model.named_parameters():
        if p.requires_grad:

            def note(grad, name=name, p=p):
                seen.append((name, p.norm().item()))

            handles.append(p.register_hook(note))
    return handles


@mistake("04.4", "upside_down", points=4)
def watch_norms(model, seen):
    def note(name, grad):
        seen.insert(0, (name, grad.norm().item()))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "not_the_norm", points=4)
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, grad.abs().mean().item()))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "not_the_norm", points=4)
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, grad.square().sum().item()))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "changes_gradient")
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, grad.norm().item()))
        return grad / grad.norm()

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "returns_norm")
def watch_norms(model, seen):
    def note(name, grad):
        norm = grad.norm()
        seen.append((name, norm.item()))
        return norm

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "returns_norm")
def watch_norms(model, seen):
    return [p.register_hook(lambda grad: grad.norm().item()) for p in model.parameters() if p.requires_grad]


@mistake("04.4", "late_binding")
def watch_norms(model, seen):
    handles = []
    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(param.register_hook(lambda grad: seen.append((name, grad.norm().item()))))
    return handles


@mistake("04.4", "hooks_frozen")
def watch_norms(model, seen):
    handles = []
    for name, param in model.named_parameters():
        handles.append(param.register_hook(lambda grad, name=name: seen.append((name, grad.norm().item()))))
    return handles


@mistake("04.4", "calls_now")
def watch_norms(model, seen):
    def note(param):
        pass

    return [p.register_hook(note(p)) for p in model.parameters() if p.requires_grad]


@mistake("04.4", "no_argument")
def watch_norms(model, seen):
    def note():
        for name, param in model.named_parameters():
            seen.append((name, param.grad.norm().item()))

    return [p.register_hook(note) for p in model.parameters() if p.requires_grad]


@mistake("04.4", "two_arguments")
def watch_norms(model, seen):
    def note(grad, name):
        seen.append((name, grad.norm().item()))

    return [p.register_hook(note) for _, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "no_handles", points=4)
def watch_norms(model, seen):
    for name, param in model.named_parameters():
        if param.requires_grad:
            param.register_hook(lambda grad, name=name: seen.append((name, grad.norm().item())))
