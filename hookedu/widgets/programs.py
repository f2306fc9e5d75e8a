"""Templates of "Show code": plain PyTorch programs, short enough to read and complete enough to run.

The programs do not use hookedu. They expect `model` and its input, and assign to `shown` exactly the numbers
on the screen.
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
print("mean", values.mean(), "std", values.std())
print("min", values.min(), "max", values.max())
print("zeros", (values == 0).float().mean())
"""

_KINDS = {"maps": _OUTPUTS, "statistics": _OUTPUTS, "gradients": _GRADIENTS, "weights": _WEIGHTS}


def program(view: str, given: str, setup: str, wrapped: bool, **values: object) -> str:
    """Return the program of one view.

    Parameters
    ----------
    view : {"maps", "statistics", "gradients", "weights"}
        What the program computes.
    given : str
        Names of the variables that the program expects besides `model`, for its first line.
    setup : str
        A line that assigns `x`, or "".
    wrapped : bool
        Whether `model` is a wrapper, such as that of `torch.compile` or `DataParallel`.
    **values : object
        Values for the placeholders of the template.
    """
    lines = [_INPUT.format(given=given), *([setup] if setup else []), *([_UNWRAP] if wrapped else []), ""]
    return "\n".join(lines) + _KINDS[view].format(**values) + _NUMBERS
