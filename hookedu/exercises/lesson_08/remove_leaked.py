"""Exercise 08.3, `remove_leaked(model, handles)`: remove every hook whose handle is lost."""

import random
from collections import OrderedDict
from typing import Any

from torch import nn
from torch.utils.hooks import RemovableHandle

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_08.shared import SomeonesHook, without_global_hooks
from hookedu.exercises.observation import Opaque, show
from hookedu.exercises.tools import linear, whole
from hookedu.language import Text

_Place = tuple[str, str]  # (path of the module, kind of the hook)
_REGISTER = {
    "forward": "register_forward_hook",
    "forward_pre": "register_forward_pre_hook",
    "backward": "register_full_backward_hook",
    "backward_pre": "register_full_backward_pre_hook",
}
_FORWARD = ("forward", "forward_pre")
_TOP, _INSIDE = ("stem", "body", "head"), ("body.fc", "body.act")


_look = SomeonesHook()  # serves as every hook of the exercise: only handles tell them apart


def _places(rng: random.Random) -> tuple[list[_Place], list[_Place]]:
    """Return (places of the hooks whose handles are known, places of the leaked hooks).

    The first leaked hook is a twin of the first known one, and its module carries another leaked hook. The two leaked
    hooks inside `body` are on one module, which carries no known hook.
    """
    known_inside, other = rng.sample(_INSIDE, 2)
    known = [
        (rng.choice(_TOP), "forward"),
        (known_inside, "backward"),
        *rng.sample([(path, kind) for path in _TOP for kind in ("forward_pre", "backward")], 2),
    ]
    leaked = [
        known[0],
        (known[0][0], rng.choice(("backward", "backward_pre"))),
        (other, "forward"),
        (other, "forward_pre"),
        *rng.sample([(path, "forward_pre") for path in _TOP], rng.randint(0, 2)),
    ]
    return known, leaked


def _case(rng: random.Random) -> tuple[nn.Module, list[RemovableHandle], list[RemovableHandle]]:
    """Return (model, known handles, leaked handles)."""
    known, leaked = _places(rng)
    body = nn.Sequential(OrderedDict(fc=linear(whole(rng, 4).reshape(2, 2)), act=nn.ReLU()))
    model = nn.Sequential(OrderedDict(stem=nn.Identity(), body=body, head=nn.Identity()))
    places = [(place, False) for place in known] + [(place, True) for place in leaked]
    handles: dict[bool, list[RemovableHandle]] = {False: [], True: []}
    rng.shuffle(places)
    twins = sorted(places.index((known[0], is_leaked)) for is_leaked in (True, False))
    for at, is_leaked in zip(twins, (True, False), strict=True):  # the leaked twin is registered first
        places[at] = (known[0], is_leaked)
    for (path, kind), is_leaked in places:
        handles[is_leaked].append(getattr(model.get_submodule(path), _REGISTER[kind])(_look))
    return model, handles[False], handles[True]


def _is_on(handle: RemovableHandle) -> bool:
    return handle.id in (handle.hooks_dict_ref() or ())


def _probe(remove_leaked: Any, rng: random.Random) -> dict[str, Any]:
    with without_global_hooks():
        model, known, leaked = _case(rng)
        found = remove_leaked(model, list(known))
        return {
            "found": found,
            "left": sum(map(_is_on, leaked)),
            "lost": len(known) - sum(map(_is_on, known)),
        }


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    known, leaked = _places(rng)
    expected, found = _names(leaked), saw["found"]
    names = isinstance(found, list) and all(isinstance(name, str) for name in found)
    call = "remove_leaked(model, handles)"
    lost = Text(zh="少了 {n} 个别人还要的钩子", en="{n} hooks gone that someone still needs")
    left = Text(zh="还有 {n} 个漏网的钩子挂着", en="{n} leaked hooks still on")
    return [
        Criterion(
            "found",
            names and sorted(found) == expected,
            points=2,
            essential=True,
            given=Text(
                zh="有句柄的：{known}；没有的：{leaked}", en="with a handle: {known}; without: {leaked}"
            ).format(known=_text(known), leaked=_text(leaked)),
            expected=show(expected),
            got=show(sorted(found) if names else found),
            mistake=_recognised(found, saw, known, leaked),
        ),
        Criterion(
            "off",
            saw["left"] == 0,
            points=1,
            given=call,
            expected=left.format(n=0),
            got=left.format(n=saw["left"]),
            mistake=_left_on(saw, known, leaked),
        ),
        Criterion(
            "kept",
            saw["lost"] == 0,
            points=1,
            given=call,
            expected=lost.format(n=0),
            got=lost.format(n=saw["lost"]),
            mistake="removes_all",
        ),
    ]


def _text(places: list[_Place]) -> str:
    return ", ".join(f"{path} ({kind})" for path, kind in places)


def _left_on(saw: dict[str, Any], known: list[_Place], leaked: list[_Place]) -> str | None:
    if saw["left"] < len(leaked):
        return None
    return "wrong_way_round" if saw["lost"] == len(known) else "not_removed"


def _recognised(found: Any, saw: dict[str, Any], known: list[_Place], leaked: list[_Place]) -> str | None:
    if found is None:
        return "returns_nothing"
    if found == Opaque("set"):
        return "names_once"
    if not isinstance(found, list):
        return None
    if found and all(isinstance(item, Opaque) for item in found):
        return "returns_hooks"
    if not all(isinstance(item, str) for item in found):
        return None
    return _by_names(sorted(found), saw, known, leaked)


def _by_names(found: list[str], saw: dict[str, Any], known: list[_Place], leaked: list[_Place]) -> str | None:
    """Return the mistake that gives these names, sorted, or None."""
    if found == _names(known + leaked):
        return "removes_all"
    if found == _names(known) and saw["lost"]:
        return "wrong_way_round"
    if saw["left"] == saw["lost"] == 0 and (mistake := _misnamed(found, _names(leaked))):
        return mistake
    if len(found) == 1 and saw["left"] == len(leaked) - 1:
        return "stops_early"
    return _incomplete(found, known, leaked)


def _misnamed(found: list[str], names: list[str]) -> str | None:
    """Return the mistake behind wrong names of the right hooks, or None."""
    if not found:
        return "listed_too_late"
    if found == sorted(set(names)):
        return "names_once"
    parts = [name.split(".") for name in names]
    if found in (sorted(path[0] for path in parts), sorted(path[-1] for path in parts)):
        return "part_of_the_name"
    return None


def _incomplete(found: list[str], known: list[_Place], leaked: list[_Place]) -> str | None:
    """Return the mistake by which only these of the leaked hooks are found, or None."""
    known_modules = {path for path, _ in known}
    subsets = {
        "misses_kinds": [
            [place for place in leaked if place[1] == "forward"],
            [place for place in leaked if place[1] in _FORWARD],
        ],
        "top_level_only": [[place for place in leaked if place[0] in _TOP]],
        "twin_missed": [
            [],
            [place for place in leaked if place not in known],
            [place for place in leaked if place[0] not in known_modules],
        ],
    }
    return next(
        (mistake for mistake, ways in subsets.items() if any(found == _names(places) for places in ways)),
        None,
    )


def _names(places: list[_Place]) -> list[str]:
    return sorted(path for path, _ in places)


REMOVE_LEAKED = Exercise(
    id="08.3",
    title=Text(zh="找出漏网的钩子", en="Find the leaked hook"),
    answer="remove_leaked",
    points=4,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="句柄和 `list_hooks` 列出的钩子都有 `.id`，同一个钩子的两个 `.id` 相同。",
            en="A handle has an `.id`, and so has each hook that `list_hooks` lists; for one and the same hook the two agree.",
        ),
        Text(
            zh="先收集要留下的：`known = {handle.id for handle in handles}`。漏网的就是 `list_hooks(model)` 里 `hook.id` 不在 `known` 中的。",
            en="First collect what stays: `known = {handle.id for handle in handles}`. Leaked are those in `list_hooks(model)` whose `hook.id` is "
            "not in `known`.",
        ),
        Text(
            zh="把它们放进列表 `leaked`，逐个 `hook.remove()`，最后 `return [hook.path for hook in leaked]`。",
            en="Put them into a list `leaked`, call `hook.remove()` for each, then `return [hook.path for hook in leaked]`.",
        ),
    ),
    mistakes=(
        Mistake(
            "returns_nothing",
            Text(
                zh="`remove_leaked` 返回了 `None`：最后要返回模块名字的列表。",
                en="`remove_leaked` returned `None`: end by returning the list of module names.",
            ),
            fails="found",
        ),
        Mistake(
            "returns_hooks",
            Text(
                zh="你返回的是钩子本身。要的是模块的名字：`hook.path`。",
                en="You returned the hooks themselves. What is wanted is the names of their modules: `hook.path`.",
            ),
            fails="found",
        ),
        Mistake(
            "removes_all",
            Text(
                zh="别人还要的钩子也被取下了。`handles` 里的每一个都要留着：按 `.id` 区分。",
                en="You also took off hooks that someone still needs. Each one in `handles` must stay: tell them apart by `.id`.",
            ),
            fails="kept",
        ),
        Mistake(
            "wrong_way_round",
            Text(
                zh="弄反了：`handles` 里的是要**留下**的，你取下的正是它们。",
                en="The wrong way round: those in `handles` are to **stay**, and they are the ones you took off.",
            ),
            fails="found",
        ),
        Mistake(
            "misses_kinds",
            Text(
                zh="你漏掉了几种钩子：模块上还有前置钩子和反向钩子，各有各的表。`list_hooks` 会把它们全部列出。",
                en="You missed some kinds: a module also carries pre-hooks and backward hooks, each kind in a table of its own. `list_hooks` "
                "lists them all.",
            ),
            fails="found",
        ),
        Mistake(
            "top_level_only",
            Text(
                zh="`children()` 只看第一层，`body` 里面的钩子漏掉了。要走遍 `modules()`，或者用 `list_hooks`。",
                en="`children()` sees the first level only, so hooks inside `body` were missed. Walk through `modules()`, or use `list_hooks`.",
            ),
            fails="found",
        ),
        Mistake(
            "twin_missed",
            Text(
                zh="有漏网的钩子被当成了别人还要的：它们是同一个函数，或者在同一个模块上。能区分的只有 `.id`。",
                en="You took leaked hooks for ones that are still needed: the two are one function, or sit on one module. Only the `.id` "
                "tells them apart.",
            ),
            fails="found",
        ),
        Mistake(
            "names_once",
            Text(
                zh="同一个模块上可以有几个漏网的钩子，它的名字就要出现几次。集合会去掉重复：返回列表，每个钩子一项。",
                en="One module may carry several leaked hooks, and then its name belongs in the result as many times. A set drops repeats: "
                "return a list, one entry per hook.",
            ),
            fails="found",
        ),
        Mistake(
            "part_of_the_name",
            Text(
                zh="名字只写了一段。模块在 `model` 里的名字是整个点号路径，例如 `body.act`：`list_hooks(model)` 的 `hook.path` 就是它。",
                en="That is only a part of the name. In `model` a module goes by its whole dotted path, such as `body.act`: the `hook.path` of "
                "`list_hooks(model)`.",
            ),
            fails="found",
        ),
        Mistake(
            "listed_too_late",
            Text(
                zh="钩子都取下了，名字却没有记下来：取下以后，`list_hooks` 就不再列出它们。先把要取下的存成列表，再逐个取下。",
                en="The hooks are off, but their names are lost: once off, `list_hooks` lists them no longer. Store those to take off in a list "
                "first, then take them off.",
            ),
            fails="found",
        ),
        Mistake(
            "stops_early",
            Text(
                zh="只取下一个就结束了：`return` 写进了循环里面。等循环走完再返回。",
                en="You took off one and stopped: the `return` stands inside the loop. Return after the loop has ended.",
            ),
            fails="found",
        ),
        Mistake(
            "not_removed",
            Text(
                zh="找到了，却没有取下：对每一个调用 `hook.remove()`。",
                en="You found them but left them on: call `hook.remove()` for each.",
            ),
            fails="off",
        ),
        Mistake(
            "changed_while_iterating",
            Text(
                zh="你一边遍历字典，一边从中删除。先用 `list(...)` 复制一份再遍历。",
                en="You took entries out of a dictionary while walking through it. Walk through a copy: `list(...)`.",
            ),
            raises=r"mutated during iteration|changed size during iteration",
        ),
    ),
    insight=Text(
        zh="句柄丢了，钩子还在，`.id` 就是它的身份证。调试别人的笔记本，第一步总是 `list_hooks(model)`。",
        en="A handle may get lost, its hook stays, and the `.id` is its identity card. The first step in any notebook that is not yours: "
        "`list_hooks(model)`.",
    ),
)
