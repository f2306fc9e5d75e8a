"""What the ninth strangers tried on lesson 13."""

import torch

from tests.answers import unnamed


@unnamed("13.2", "output")
def layer_output(compiled, name, x):
    kept = []
    handle = compiled.get_submodule(name).register_forward_hook(
        lambda module, args, output: kept.append((output.detach() * 10000).round() / 10000)
    )
    try:
        with torch.compiler.set_stance("force_eager"), torch.no_grad():
            compiled(x)
    finally:
        handle.remove()
    return kept[0]
