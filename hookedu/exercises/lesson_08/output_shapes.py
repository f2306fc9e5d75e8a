"""Exercise 08.2, `output_shapes(model, x)`: every child's output shape by name, leaving no trace."""

import random
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.forward_hooks import LATE_BINDING
from hookedu.exercises.lesson_08.shared import SomeonesHook
from hookedu.exercises.observation import show
from hookedu.exercises.tools import module_hooks
from hookedu.language import Text


class _SmallResNet(nn.Module):
    """The stages of a tiny ResNet, under names that differ from check to check."""

    def __init__(self, names: list[str], width: int, classes: int) -> None:
        super().__init__()
        stages = (
            nn.Conv2d(3, width, 3, stride=2, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Sequential(nn.Conv2d(width, 2 * width, 1), nn.ReLU()),
            nn.AdaptiveAvgPool2d(1),
            nn.Linear(2 * width, classes),
        )
        for name, stage in zip(names, stages, strict=True):
            self.add_module(name, stage)
        self.runs = 0

    def shapes(self, x: torch.Tensor) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
        """Return name -> (input shape, output shape), without calling the model."""
        found = {}
        for name, stage in self.named_children():
            x = x.flatten(1) if isinstance(stage, nn.Linear) else x
            before, x = x.shape, stage(x)
            found[name] = (tuple(before), tuple(x.shape))
        return found

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.runs += 1
        *stages, last = (module for module in self._modules.values() if module is not None)
        for stage in stages:
            x = stage(x)
        return last(x.flatten(1))


def _case(rng: random.Random) -> tuple[_SmallResNet, torch.Tensor]:
    words = ("conv", "bn", "relu", "maxpool", "layer", "avgpool", "fc")
    names = [f"{word}{rng.randint(1, 99)}" for word in words]
    model = _SmallResNet(names, rng.randint(3, 9), rng.randint(5, 12))
    side = 4 * rng.randint(3, 5)
    return model, torch.ones(rng.randint(2, 5), 3, side, side)


def _probe(output_shapes: Any, rng: random.Random) -> dict[str, Any]:
    model, x = _case(rng)
    before = [(module, set(vars(module))) for module in model.modules()]
    first, *_ = model.children()
    theirs = first.register_forward_hook(SomeonesHook())
    found = output_shapes(model, x)
    lost = theirs.id not in first._forward_hooks
    if isinstance(found, dict):  # of a torch.Size, `encode` would keep only the type
        found = {name: tuple(v) if isinstance(v, tuple) else v for name, v in found.items()}
    return {
        "found": found,
        "marks": sorted({key for module, keys in before for key in set(vars(module)) - keys}),
        "replaced": [module for module, _ in before] != list(model.modules()),
        "mode": all(module.training for module, _ in before),
        "runs": model.runs,
        "left": module_hooks(model) - (not lost),
        "lost": lost,
    }


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    model, x = _case(rng)
    with torch.no_grad():
        shapes = model.shapes(x)
    expected = {name: list(after) for name, (_, after) in shapes.items()}
    found = saw["found"]
    hooks = Text(zh="你的钩子：{n} 个，别人的：{theirs} 个", en="hooks of yours: {n}, of others: {theirs}")
    runs = Text(zh="模型运行了 {n} 次", en="times that the model ran: {n}")
    call = "output_shapes(model, x)"
    return [
        Criterion(
            "shapes",
            _are_shapes(found) and found == expected,
            points=1,
            essential=True,
            given=f"x.shape = {tuple(x.shape)}; {call}",
            expected=_show(expected),
            got=_show(found),
            mistake=_recognised(found, shapes),
        ),
        Criterion(
            "once",
            saw["runs"] <= 1,  # 0 if a copy of the model ran
            points=1,
            given=call,
            expected=runs.format(n=1),
            got=runs.format(n=saw["runs"]),
            mistake="runs_again",
        ),
        Criterion(
            "same_modules",
            not saw["replaced"],
            points=1,
            given=f"{call}; list(model.modules())",
            expected=Text(zh="原来的模块", en="the modules that were there"),
            got=Text(zh="有模块被换掉了", en="some modules have been replaced"),
            mistake="replaces_children",
        ),
        Criterion(
            "no_marks",
            saw["marks"] == [] and saw["mode"] is True,
            points=1,
            given=f"{call}; vars(module)",
            expected=Text(zh="没有新的属性，`training` 是 True", en="no new attribute, `training` is True"),
            got=Text(
                zh="新的属性：{names}，`training` 是 {mode}",
                en="new attributes: {names}, `training` is {mode}",
            ).format(names=show(saw["marks"]), mode=saw["mode"]),
            mistake="marks_modules" if saw["marks"] else "switches_mode",
        ),
        Criterion(
            "clean",
            saw["left"] == 0 and not saw["lost"],
            points=1,
            given=call,
            expected=hooks.format(n=0, theirs=1),
            got=hooks.format(n=saw["left"], theirs=int(not saw["lost"])),
            mistake="removes_others" if saw["lost"] else "leaves_hooks",
        ),
    ]


def _are_shapes(found: Any) -> bool:
    return isinstance(found, dict) and all(
        isinstance(v, list) and all(type(size) is int for size in v) for v in found.values()
    )


def _show(found: Any) -> str:
    """Format shapes as tuples, as learners write them; `encode` has made lists of them."""
    return show({name: tuple(v) for name, v in found.items()} if _are_shapes(found) else found)


def _recognised(found: Any, shapes: dict[str, Any]) -> str | None:
    if found is None:
        return "returns_nothing"
    if not isinstance(found, dict):
        return None
    names, keys = list(shapes), {str(key) for key in found}
    if not found:
        return "never_runs"
    if keys == {names[-1]}:
        return "late_binding"
    if "Conv2d" in keys:
        return "class_names"
    if keys > set(names):
        return "every_module"
    if keys == set(names):
        if any(isinstance(value, torch.Tensor) or "Tensor" in str(value) for value in found.values()):
            return "keeps_tensors"
        if _are_shapes(found) and found == {name: list(before) for name, (before, _) in shapes.items()}:
            return "input_shapes"
    return None


OUTPUT_SHAPES = Exercise(
    id="08.2",
    title=Text(zh="按名字记下形状", en="Shapes by name"),
    answer="output_shapes",
    points=5,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="`model.named_children()` 同时给出名字和模块。名字放进钩子里，不放到模块上：`partial(note, name)`。",
            en="`model.named_children()` gives names and modules together. The name goes into the hook, not onto the module: "
            "`partial(note, name)`.",
        ),
        Text(
            zh="钩子是 `def note(name, module, args, output): shapes[name] = tuple(output.shape)`。句柄收进列表，"
            "模型只调用一次，最后逐个取下。",
            en="The hook is `def note(name, module, args, output): shapes[name] = tuple(output.shape)`. Collect the handles in "
            "a list, call the model once, take all of them off.",
        ),
        Text(
            zh="`handles = [child.register_forward_hook(partial(note, name)) for name, child in model.named_children()]`，"
            "`try: model(x)`，`finally:` 里逐个 `handle.remove()`，最后 `return shapes`。",
            en="`handles = [child.register_forward_hook(partial(note, name)) for name, child in model.named_children()]`, then "
            "`try: model(x)`, each `handle.remove()` in its `finally:`, and `return shapes`.",
        ),
    ),
    mistakes=(
        Mistake("late_binding", LATE_BINDING.says, fails="shapes"),
        Mistake(
            "marks_modules",
            Text(
                zh="形状都对，可是模块上多了属性：它会一直留着，也会跟着 `deepcopy` 和 `torch.save` 走。把名字放进钩子：`partial(note, name)`。",
                en="The shapes are right, but the modules carry a new attribute now. It stays, and it goes along with `deepcopy` and "
                "`torch.save`. Put the name into the hook: `partial(note, name)`.",
            ),
            fails="no_marks",
        ),
        Mistake(
            "replaces_children",
            Text(
                zh="你把子模块换成了自己的包装。`state_dict` 的键都会变，模型不再是原来的。只挂钩子，不动结构。",
                en="You put a wrapper in the place of each child. That changes every key of the `state_dict`: it is another model now. "
                "Hang up hooks, leave the structure alone.",
            ),
            fails="same_modules",
        ),
        Mistake(
            "switches_mode",
            Text(
                zh="`model.eval()` 之后没有换回来，别人接着训练时，Dropout 和 BatchNorm 就不对了。量形状不必换模式；真要换，先记下再复原。",
                en="You called `model.eval()` and did not switch back: whoever trains on gets the wrong Dropout and BatchNorm. Shapes need no "
                "other mode; if you must switch, note the mode first and restore it.",
            ),
            fails="no_marks",
        ),
        Mistake(
            "runs_again",
            Text(
                zh="模型运行了不止一次：慢，而且 BatchNorm 的统计量每次都会更新。所有钩子一起挂上，只调用一次 `model(x)`。",
                en="The model ran more than once: that is slow, and BatchNorm updates its statistics each time. Hang up all hooks together and "
                "call `model(x)` a single time.",
            ),
            fails="once",
        ),
        Mistake(
            "removes_others",
            Text(
                zh="模型上原来就有别人的钩子，现在没了。不要清空，也不要用 `remove_hooks` 一起取下：只对你自己的句柄 `handle.remove()`。",
                en="Somebody else's hook was on the model and is gone now. Do not clear the tables or take all off with `remove_hooks`: call "
                "`handle.remove()` for your own handles only.",
            ),
            fails="clean",
        ),
        Mistake(
            "leaves_hooks",
            Text(
                zh="形状都对，可是钩子还挂在模型上。留住句柄，最后逐个 `handle.remove()`。",
                en="The shapes are right, but the hooks are still on the model. Keep the handles and call `handle.remove()` for each.",
            ),
            fails="clean",
        ),
        Mistake(
            "class_names",
            Text(
                zh="键应当是模块在模型里的名字；类名会重复，两个 `Conv2d` 就混在一起了。名字由 `named_children()` 给出。",
                en="The keys should be the names that the modules have in the model; class names repeat, and two `Conv2d` get mixed up. "
                "`named_children()` gives the names.",
            ),
            fails="shapes",
        ),
        Mistake(
            "every_module",
            Text(
                zh="你把更里面的模块也记了下来。这里只要第一层：`named_children()`，不是 `named_modules()`。",
                en="You noted modules further inside as well. Only the first level is wanted: `named_children()`, not `named_modules()`.",
            ),
            fails="shapes",
        ),
        Mistake(
            "keeps_tensors",
            Text(
                zh="你留下的是张量，不是形状：整张特征图都占着内存。写 `tuple(output.shape)`。",
                en="You kept tensors, not shapes: whole feature maps stay in memory. Write `tuple(output.shape)`.",
            ),
            fails="shapes",
        ),
        Mistake(
            "input_shapes",
            Text(
                zh="这是输入的形状。前向钩子的第三个参数才是输出：`hook(module, args, output)`。",
                en="These are the shapes of the inputs. The output is a forward hook's third argument: `hook(module, args, output)`.",
            ),
            fails="shapes",
        ),
        Mistake(
            "returns_nothing",
            Text(
                zh="`output_shapes` 返回了 `None`：只 `print` 出来不够，最后要 `return shapes`。",
                en="`output_shapes` returned `None`: printing is not enough, end with `return shapes`.",
            ),
            fails="shapes",
        ),
        Mistake(
            "never_runs",
            Text(
                zh="字典是空的：钩子要等模型运行才触发。先挂钩子，再调用 `model(x)`，然后才取下。",
                en="The dictionary is empty: hooks fire only when the model runs. Hang them up, call `model(x)`, and only then take "
                "them off.",
            ),
            fails="shapes",
        ),
        Mistake(
            "chains_children",
            Text(
                zh="你把子模块一个接一个地调用了。模型的 `forward` 还做别的（这里是 `flatten`），只有 `model(x)` 才是它真正的路。",
                en="You called the children one after the other. The model's `forward` does more than that (here a `flatten`); only `model(x)` "
                "goes its real way.",
            ),
            raises=r"mat1 and mat2 shapes cannot be multiplied",
        ),
        Mistake(
            "hook_returns",
            Text(
                zh="你的钩子返回了形状，它取代了输出，下一个模块就出错了。`lambda` 的值就是返回值：改用不写 `return` 的 `def`。",
                en="Your hook returned the shape, which replaced the output, and the next module failed. The value of a `lambda` is what "
                "it returns: use a `def` without `return`.",
            ),
            raises=r"'(?:torch\.)?(?:Size|tuple)' object has no attribute",
        ),
    ),
    insight=Text(
        zh="名字在钩子里，模型一尘不染：它可以照常保存、复制，别人也看不出你来过。",
        en="The name is in the hook and the model stays clean: it saves and copies as before, and nobody can tell that you were there.",
    ),
)
