"""Answers to lesson 08 of strangers who had not read the checks, in their eleventh round: a child that a configuration leaves out."""

from tests.answers import unnamed


@unnamed("08.2", "raised")
def output_shapes(model, x):
    shapes, handles = {}, []
    try:
        for name, child in model._modules.items():

            def note(module, args, output, name=name):
                shapes[name] = tuple(output.shape)

            handles.append(child.register_forward_hook(note))
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return shapes
