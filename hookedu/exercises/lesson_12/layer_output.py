"""Exercise 12.3, `layer_output(compiled, name, x)`: look into a model that is compiled and has run."""

import random
from types import FunctionType, MethodType
from typing import Any, cast

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise
from hookedu.exercises.forward_hooks import CALLS_NOW, WRONG_ARGUMENTS
from hookedu.exercises.lesson_12.shared import says
from hookedu.exercises.observation import show
from hookedu.exercises.shared import none_left
from hookedu.exercises.tools import close, copies, linear, module_hooks, whole
from hookedu.language import Text

_LAYERS = ("encoder.fc", "head")


class Net(nn.Module):
    """Two linear layers, the first of them inside another module."""

    def __init__(self, first: torch.Tensor, second: torch.Tensor) -> None:
        super().__init__()
        self.encoder = nn.ModuleDict({"fc": linear(first)})
        self.head = linear(second)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 3 * self.head(self.encoder["fc"](x).tanh())


def _case(rng: random.Random) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return (first weight, second weight, x)."""
    return whole(rng, 4).reshape(2, 2), whole(rng, 4).reshape(2, 2), whole(rng, 2).reshape(1, 2) / 16


def _fresh(model: Net) -> Net:
    """Give the model a `forward` with its own code object, and return it.

    Dynamo keeps compiled code with the code object, which all instances of a class share: checks would reuse each
    other's compilations, and after the eighth nothing would be compiled at all.
    """
    forward = Net.forward
    model.forward = MethodType(FunctionType(forward.__code__.replace(), forward.__globals__), model)
    return model


def _probe(layer_output: Any, rng: random.Random) -> dict[str, Any]:
    # Counts compilations by any backend; imported here because it takes seconds to load.
    from torch._dynamo.utils import counters

    first, second, x = _case(rng)
    model, runs = _fresh(Net(first, second)), [0]

    def backend(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        """Compile nothing, as "eager" does, and count how often the graph runs."""

        def run(*args: Any) -> Any:
            runs[0] += 1
            return graph.forward(*args)

        return run

    # torch.compile is annotated as returning a function; given a module, it returns a module.
    compiled = cast(nn.Module, torch.compile(model, backend=backend, dynamic=False))
    with torch.compiler.set_stance("default"):  # whatever stance the notebook or the answer leaves set
        compiled(x)
        built, modes = counters["frames"]["ok"], [m.training for m in model.modules()]
        outputs = [layer_output(compiled, name, x.clone()) for name in _LAYERS]
        report = {
            "outputs": copies(outputs),
            "attached": sum(isinstance(o, torch.Tensor) and o.requires_grad for o in outputs),
            "left": module_hooks(compiled),
            "rebuilt": counters["frames"]["ok"] - built,
            "modes": sum(m.training != before for m, before in zip(model.modules(), modes, strict=True)),
        }
        runs[0] = 0
        compiled(x)
        return report | {"runs_compiled": runs[0] > 0}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    first, second, x = _case(rng)
    hidden = x @ first.T
    head = hidden.tanh() @ second.T
    expected, got = [hidden, head], saw["outputs"]
    right = all(close(g, e) for g, e in zip(got, expected, strict=True))
    mistake = None
    if not right:
        if all(g is None for g in got):
            mistake = "never_fired"
        elif all(close(g, 3 * head) for g in got):
            mistake = "models_output"
        elif close(got[0], x) and close(got[1], hidden.tanh()):
            mistake = "its_input"
        elif close(got[0], hidden) and close(got[1], x @ second.T):
            mistake = "layer_alone"
        elif all(isinstance(g, list) and len(g) == 1 for g in got):
            mistake = "a_list"
    given = f"x = {show(x)}; compiled(x); "
    call = " and ".join(f"layer_output(compiled, {name!r}, x)" for name in _LAYERS)
    return [
        Criterion(
            "output",
            right,
            points=3,
            essential=True,
            given=given + call,
            expected=show(expected),
            got=show(got),
            mistake=mistake,
        ),
        Criterion(
            "stance",
            saw["runs_compiled"],
            points=1,
            given=Text(zh="之后再调用 `compiled(x)`", en="`compiled(x)` once more, afterwards"),
            expected=Text(zh="编译好的代码运行了", en="the compiled code runs"),
            got=Text(zh="编译好的代码没有运行", en="the compiled code does not run"),
            mistake="stance_stays",
        ),
        Criterion(
            "rebuilt",
            not saw["rebuilt"],
            points=1,
            given=call,
            expected=Text(zh="没有重新编译", en="nothing is compiled anew"),
            got=Text(zh="重新编译了 {n} 次", en="{n} graphs compiled anew").format(n=saw["rebuilt"]),
            mistake="compiles_anew",
        ),
        none_left("left", call, saw["left"], "leaves_hook"),
        Criterion(
            "modes",
            not saw["modes"],
            points=1,
            given=call,
            expected=Text(zh="每个模块的 `training` 照旧", en="`training` of each module as before"),
            got=Text(zh="{n} 个模块的 `training` 变了", en="`training` of {n} modules has changed").format(
                n=saw["modes"]
            ),
            mistake="switches_mode",
        ),
        Criterion(
            "detached",
            not saw["attached"],
            points=1,
            given=call,
            expected="requires_grad == False",
            got="requires_grad == True",
            mistake="attached",
        ),
    ]


LAYER_OUTPUT = Exercise(
    id="12.3",
    title=Text(zh="看进编译好的模型", en="Look into a compiled model"),
    answer="layer_output",
    points=8,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh='模型已经编译过、运行过，新挂的钩子不会触发。`with torch.compiler.set_stance("force_eager"):` 里面，模型照平常的方式运行。',
            en='The model has been compiled and has run, so a new hook never fires. Inside `with torch.compiler.set_stance("force_eager"):` the model runs '
            "in the ordinary way.",
        ),
        Text(
            zh="层用 `compiled.get_submodule(name)` 取；`named_modules()` 里的名字前面多了 `_orig_mod.`。",
            en="Get the layer with `compiled.get_submodule(name)`; in `named_modules()` the names begin with `_orig_mod.`.",
        ),
        Text(
            zh='`with layer.register_forward_hook(keep), torch.compiler.set_stance("force_eager"): compiled(x)`，钩子里 `seen["output"] = output.detach()`，'
            '最后返回 `seen["output"]`。',
            en='`with layer.register_forward_hook(keep), torch.compiler.set_stance("force_eager"): compiled(x)`, in the hook `seen["output"] = output.detach()`; '
            'at the end return `seen["output"]`.',
        ),
    ),
    mistakes=(
        says(
            "never_fired",
            '返回了 `None`：钩子没有触发，或者少了 `return`。编译好的代码不看新钩子，要在 `set_stance("force_eager")` 里调用 `compiled(x)`。',
            "It returned `None`: the hook never fired, or a `return` is missing. Compiled code ignores new hooks; call `compiled(x)` inside of "
            '`set_stance("force_eager")`.',
            fails="output",
        ),
        says(
            "nothing_kept",
            '什么都没有留下：钩子没有触发。编译好的代码不看新钩子，要在 `set_stance("force_eager")` 里调用 `compiled(x)`。',
            'Nothing was kept: the hook never fired. Compiled code ignores new hooks; call `compiled(x)` inside of `set_stance("force_eager")`.',
            raises=r"^IndexError|^KeyError: (?!'(encoder\.fc|head)')|^StopIteration|^UnboundLocalError|cannot access free variable",
        ),
        says(
            "prefix",
            "这个名字下什么都没有。若是在模型里找层：`named_modules()` 的名字前面多了 `_orig_mod.`，用 `compiled.get_submodule(name)`。"
            '若是在自己留下的东西里找：钩子没有触发，要在 `set_stance("force_eager")` 里调用 `compiled(x)`。',
            "There is nothing under this name. If you looked for the layer: names in `named_modules()` begin with `_orig_mod.`, so use "
            "`compiled.get_submodule(name)`. If you looked into what you kept: the hook never fired, so call `compiled(x)` inside of "
            '`set_stance("force_eager")`.',
            raises=r"^KeyError: '(encoder\.fc|head)'|has no attribute 'encoder\.fc'",
        ),
        says(
            "stance_stays",
            "值是对的，可是 `force_eager` 还在生效：以后所有编译过的模型都不再用编译好的代码。把它放进 `with`。",
            "The values are right, but `force_eager` is still in force: from now on no compiled model uses its compiled code. Put it into a `with`.",
            fails="stance",
        ),
        says(
            "compiles_anew",
            '值是对的，可是你让模型重新编译了，这可能要几分钟。不要 `reset()`，也不要再 `torch.compile`，用 `set_stance("force_eager")` 暂时绕开。',
            "The values are right, but you made the model compile anew, which can take minutes. No `reset()`, no new `torch.compile`: step around with "
            '`set_stance("force_eager")`.',
            fails="rebuilt",
        ),
        says(
            "leaves_hook",
            "值是对的，钩子却没有取下：下一次编译会把它编进去。用 `with layer.register_forward_hook(...):`。",
            "The values are right, but the hook stayed: the next compilation takes it in. Use `with layer.register_forward_hook(...):`.",
            fails="left",
        ),
        says(
            "attached",
            "留下的张量还连着计算图。留下 `output.detach()`。",
            "What you kept still holds its graph. Keep `output.detach()`.",
            fails="detached",
        ),
        says(
            "models_output",
            "这是整个模型的输出。要的是名为 `name` 的那一层的。",
            "This is the output of the whole model. The one of the layer `name` is wanted.",
            fails="output",
        ),
        says(
            "layer_alone",
            "你把 `x` 直接交给了那一层。要的是整个模型收到 `x` 时它的输出：运行 `compiled(x)`，用前向钩子去看。",
            "You handed `x` to the layer itself. Wanted is its output while the whole model works on `x`: run `compiled(x)`, and look with a forward "
            "hook.",
            fails="output",
        ),
        says(
            "switches_mode",
            "值是对的，可是模型换了模式：不要调用 `eval()` 或 `train()`，之后的训练会跟着变。",
            "The values are right, but the model changed its mode: call neither `eval()` nor `train()`, which would change the training that follows.",
            fails="modes",
        ),
        says(
            "its_input",
            "这是那一层的输入。输出是前向钩子的第 3 个参数。",
            "This is the layer's input. Its output is the 3rd argument of a forward hook.",
            fails="output",
        ),
        says(
            "a_list",
            "你返回的是列表，要的是里面的张量。",
            "You returned a list. The tensor inside is wanted.",
            fails="output",
        ),
        *(CALLS_NOW, WRONG_ARGUMENTS),
    ),
    insight=Text(
        zh="`record()` 遇到编译过的模型，用的就是 `force_eager`，还会提醒一次。",
        en="`record()` uses `force_eager` on a compiled model, too, and says so once.",
    ),
)
