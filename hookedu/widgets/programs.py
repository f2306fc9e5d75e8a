"""Templates of "Show code": plain PyTorch programs, short enough to read and complete enough to run.

The programs do not use hookedu. They expect `model` and its input, and assign to `shown` exactly the numbers
on the screen.
"""

_INPUT = "# {given}: what the widget was given"

_UNWRAP = "model = getattr(model, '_orig_mod', None) or model.module  # without its wrapper"

_EAGERLY = """\
with torch.compiler.set_stance("force_eager"):  # compiled code may not call new hooks
        """

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
    {call}
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
values = shown{real}.float()
print("mean", values.mean(), "std", values.std())
print("min", values.min(), "max", values.max())
print("zeros", (values == 0).float().mean())
"""

# The comments of these programs, of a score and of GradCamPlayground's, as a Chinese reader gets them.
_IN_CHINESE = {
    ": what the widget was given": "：交给控件的",
    "; x: its picture,": "；x：它的图片，",
    "channels that are off": "关掉的通道",
    "without its wrapper": "去掉外面的包装",
    "compiled code may not call new hooks": "编译过的代码可能不会调用新钩子",
    "clone: a later in-place op must not change it": "克隆：后面的就地操作就改不了它",
    "backward comes to the calls in reverse order": "反向传播倒着经过各次调用",
    "adds to the .grad of every parameter, too": "也会加到每个参数的 .grad 上",
    "of each sample the highest": "每个样本取最高的",
}
_KINDS = {"maps": _OUTPUTS, "statistics": _OUTPUTS, "gradients": _GRADIENTS, "weights": _WEIGHTS}


def program(
    view: str, given: list[str], setup: str, wrapped: bool, compiled: bool, call: str, **values: object
) -> str:
    """Return the program of one view.

    Parameters
    ----------
    view : {"maps", "statistics", "gradients", "weights"}
        What the program computes.
    given : list of str
        Names of the variables that the program expects besides `model`, for its first line.
    setup : str
        A line that assigns the first argument of the model, or "".
    wrapped : bool
        Whether `model` is a wrapper, such as that of `torch.compile` or `DataParallel`.
    compiled : bool
        Whether a part of the model is compiled.
    call : str
        The call of the model.
    **values : object
        Values for the other placeholders of the template.
    """
    compiled = compiled and view != "weights"
    lines = [_INPUT.format(given=", ".join(["model", *given]))]
    lines += [
        f"import {name}"
        for name in ("numpy", "torch")
        if f"{name}." in setup or (compiled and name == "torch")
    ]
    lines += [line for line in (setup, _UNWRAP if wrapped else "") if line]
    call = (_EAGERLY if compiled else "") + ("output = " if view == "gradients" else "") + call
    return "\n".join([*lines, ""]) + "\n" + (_KINDS[view] + _NUMBERS).format(call=call, **values)


def sides(program: str) -> dict[str, str]:
    """Return a program as the browser gets it, with its comments in each language."""
    chinese = program
    for comment, in_chinese in _IN_CHINESE.items():
        chinese = chinese.replace(comment, in_chinese)
    return {"zh": chinese, "en": program}
