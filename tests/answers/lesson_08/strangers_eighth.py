"""What the eighth strangers tried on lesson 08: wrong answers that had been accepted."""

from functools import partial

from tests.answers import mistake


# The handles of others belong to the dictionaries that were there.
@mistake("08.2", "replaces_table", points=4)
def output_shapes(model, x):
    shapes, saved = {}, {}

    def note(name, module, args, output):
        shapes[name] = tuple(output.shape)

    for name, child in model.named_children():
        saved[name] = child._forward_hooks.copy()
        child.register_forward_hook(partial(note, name))
    try:
        model(x)
    finally:
        for name, child in model.named_children():
            child._forward_hooks = saved[name]
    return shapes
