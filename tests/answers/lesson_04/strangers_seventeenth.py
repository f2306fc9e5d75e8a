"""Wrong answers to lesson 04 that were told something untrue, from a stranger in the seventeenth round."""

from tests.answers import edited, mistake


# An attribute of the parameter says that a hook is on, also when it has been removed.
@mistake("04.3", "one_memory")
def freeze_rows(embedding, rows):
    weight = embedding.weight
    if not hasattr(weight, "_freeze"):

        def hook(grad):
            grad = grad.clone()
            grad[rows] = 0
            return grad

        weight._freeze = weight.register_hook(hook)
    return weight._freeze


@mistake("04.4", "one_memory")
def watch_norms(model, seen):
    handles = []
    for name, param in model.named_parameters():
        if param.requires_grad:
            if not hasattr(param, "_watch"):
                param._watch = param.register_hook(lambda g, name=name: seen.append((name, g.norm().item())))
            handles.append(param._watch)
    return handles


# Six digits are a norm that was rounded, not another number.
edited("04.4", "rounds_off", ("grad.norm().item()", 'float(f"{grad.norm().item():.6g}")'), points=4)
