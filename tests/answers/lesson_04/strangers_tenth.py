"""What the tenth strangers tried on lesson 04."""

from tests.answers import mistake


@mistake("04.4", "clears_grad")
def watch_norms(model, seen):
    handles = []
    for name, param in model.named_parameters():
        if param.requires_grad:

            def note(grad, name=name, param=param):
                param.grad = None
                seen.append((name, grad.norm().item()))

            handles.append(param.register_hook(note))
    return handles
