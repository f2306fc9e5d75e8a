""" "Show code": the plain PyTorch program behind a picture, short enough to read and complete enough to run.

The programs use no name of hookedu. They expect `model` and the input, and end with `shown`: the very numbers
that are on the screen.
"""

_INPUT = "# model, {given}: what the widget was given"

_UNWRAP = "model = getattr(model, '_orig_mod', None) or model.module  # without its wrapper"

_OUTPUTS = """\
outputs = []

def keep(module, args, output):
    outputs.append(output{leaf}.detach().clone())  # clone: a later in-place op must not change it

handle = model.get_submodule({layer!r}).register_forward_hook(keep)
try:
    {call}
finally:
    handle.remove()

shown = outputs[{number}]{index}
"""

_GRADIENTS = """\
gradients = []

def watch(module, args, output):
    call = len(gradients)  # backward comes to the calls in reverse order
    gradients.append(None)

    def keep(grad):
        gradients[call] = grad.detach().clone()

    output{leaf}.register_hook(keep)

handle = model.get_submodule({layer!r}).register_forward_hook(watch)
try:
    output = {call}
finally:
    handle.remove()
score = {score}
score.backward()  # adds to the .grad of every parameter, too

shown = gradients[{number}]{index}
"""

_WEIGHTS = """\
shown = model.get_submodule({layer!r}).weight.detach(){index}
"""

_NUMBERS = """
values = shown.float()
print("mean", values.mean(), "std", values.std(), "min", values.min(), "max", values.max())
print("zeros", (values == 0).float().mean())
"""

_KINDS = {"maps": _OUTPUTS, "statistics": _OUTPUTS, "gradients": _GRADIENTS, "weights": _WEIGHTS}


def program(view: str, given: str, setup: str, wrapped: bool, **values: object) -> str:
    """The program of one view. setup: a line that makes `x`, or "". wrapped: by torch.compile or DataParallel."""
    lines = [_INPUT.format(given=given), *([setup] if setup else []), *([_UNWRAP] if wrapped else []), ""]
    return "\n".join(lines) + _KINDS[view].format(**values) + _NUMBERS
