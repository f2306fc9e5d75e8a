"""Answers to 04.3, `freeze_rows`."""

import torch

from tests.answers import alternative, mistake, unnamed


@alternative("04.3")
def freeze_rows(embedding, rows):
    def freeze(grad):
        return grad.index_fill(0, torch.tensor(rows), 0.0)

    return embedding.weight.register_hook(freeze)


@alternative("04.3")
def freeze_rows(embedding, rows):
    learn = torch.ones_like(embedding.weight[:, :1])
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


@mistake("04.3", "post_accumulate", points=3)
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


@mistake("04.3", "asks_too_early")
def freeze_rows(embedding, rows):
    def freeze(module, grad_input, grad_output):
        module.weight.grad[rows] = 0

    return embedding.register_full_backward_hook(freeze)


@mistake("04.3", "asks_too_early")
def freeze_rows(embedding, rows):
    def freeze(grad):
        embedding.weight.grad[rows] = 0

    return embedding.weight.register_hook(freeze)


@mistake("04.3", "removes_itself")
def freeze_rows(embedding, rows):
    def freeze(grad):
        handle.remove()
        return grad.index_fill(0, torch.tensor(rows), 0)

    handle = embedding.weight.register_hook(freeze)
    return handle


@mistake("04.3", "first_gradient", points=4)
def freeze_rows(embedding, rows):
    kept = []

    def freeze(grad):
        kept.append(grad.index_fill(0, torch.tensor(rows), 0))
        return kept[0]

    return embedding.weight.register_hook(freeze)


@mistake("04.3", "only_through_the_module")
def freeze_rows(embedding, rows):
    def freeze(module, args, output):
        frozen = torch.isin(args[0], torch.tensor(rows))[..., None]
        return torch.where(frozen, output.detach(), output)

    return embedding.register_forward_hook(freeze)


@mistake("04.3", "hooks_another_tensor")
def freeze_rows(embedding, rows):
    handle = embedding.weight.register_hook(lambda grad: grad.index_fill(0, torch.tensor(rows), 0))
    handle.remove()
    return handle


@mistake("04.3", "argument", points=4)
def freeze_rows(embedding, rows):
    rows.sort()
    return embedding.weight.register_hook(lambda grad: grad.index_fill(0, torch.tensor(rows), 0))


@mistake("04.3", "hooks", points=4)
def freeze_rows(embedding, rows):
    embedding.weight.register_hook(print)
    return embedding.weight.register_hook(lambda grad: grad.index_fill(0, torch.tensor(rows), 0))


@unnamed("04.3", "freezes")
def freeze_rows(embedding, rows):
    def freeze(grad):
        for row in rows:
            new = grad.clone()
            new[row] = 0
        return new

    return embedding.weight.register_hook(freeze)


@unnamed("04.3", "freezes")
def freeze_rows(embedding, rows):
    def freeze(grad):
        new = grad.clone()
        for row in rows:
            new[row] = 0
            return new

    return embedding.weight.register_hook(freeze)


@unnamed("04.3", "freezes")
def freeze_rows(embedding, rows):
    def freeze(grad):
        grad.clone()[rows] = 0
        return grad

    return embedding.weight.register_hook(freeze)


@mistake("04.3", "attributes", points=4)
def freeze_rows(embedding, rows):
    learns = torch.ones(embedding.num_embeddings, 1, dtype=embedding.weight.dtype)
    learns[rows] = 0
    embedding.learns = learns
    return embedding.weight.register_hook(lambda grad: grad * embedding.learns)


@unnamed("04.3", "handle", points=4)
def freeze_rows(embedding, rows):
    embedding.padding_idx = rows[0]  # its gradient stays zero, with or without a hook
    return embedding.weight.register_hook(lambda grad: grad.index_fill(0, torch.tensor(rows), 0))
