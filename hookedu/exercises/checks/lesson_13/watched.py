"""What decides about 13.1, `watched(model, name, hook)`."""

from collections.abc import Callable
from typing import Any

from hookedu.exercises.checks.common import must_be
from hookedu.exercises.checks.forward_hooks import CALLS_NOW
from hookedu.exercises.criteria import Check, Of, Saw, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_13.watched import ADDED, CALLS, LAYERS, PROBE, Case
from hookedu.exercises.tools import same


class Key:
    """What must be observed of the two models, by name, and what wrong answers give."""

    def __init__(self, case: Case) -> None:
        first, second, self.x, _, factor = case
        inputs = [(-1) ** n * self.x for n in range(CALLS)]
        between = [2 * x @ first.T for x in inputs]
        self.plain = [x @ second.T for x in between]
        added = [p + (0.0 if n == 1 else ADDED) for n, p in enumerate(self.plain)]
        self.whole = [[False, (x,), p, True] for x, p in zip(inputs, self.plain, strict=True)]
        self.after = factor * self.plain[0]
        self.wanted: dict[str, list[Any]] = {
            "plain": [0, 0],
            "events": [
                [[True, (x,), x @ first.T, True] for x in inputs],
                [[True, (x,), p, True] for x, p in zip(between, self.plain, strict=True)],
            ],
            "outputs": [self.plain, added],
            "attached": [True, True],
            "rebuilt": [0, 0],
            "attributes": [[], []],
        }


def _wrong(saw: Saw, key: Key, *names: str) -> int | None:
    """Return which of the two models is the first that differs in one of these observations."""
    for n, model in enumerate(saw.models):
        if not all(same(model[name], key.wanted[name][n]) for name in names):
            return n
    return None if len(saw.models) == 2 else 0


def _right(*names: str) -> Of:
    return lambda saw, key: _wrong(saw, key, *names) is None


def _of(holds: Callable[[Any, Key], Any], *names: str) -> Of:
    """Return the function of the first model that differs in these observations, and of the key."""
    return lambda saw, key: holds(saw.models[_wrong(saw, key, *names) or 0], key)


def _if_fired(holds: Callable[[Any, Key], Any]) -> Of:
    return _of(holds, "events")


def _if_called(holds: Callable[[list[Any], list[Any]], Any]) -> Of:
    """Return the condition on what the hook got and what it should have got."""
    return lambda saw, key: holds(
        saw.models[n := _wrong(saw, key, "events") or 0]["events"], key.wanted["events"][n]
    )


def _calls(*names: str) -> Callable[[Saw, Key], str]:
    """Return the line of the input."""

    def line(saw: Saw, key: Key) -> str:
        name = LAYERS[_wrong(saw, key, *names) or 0]
        return f"x = {show(key.x)}; watched(model, {name!r}, hook); compiled(x), compiled(-x), compiled(x)"

    return line


def _event(wanted: bool) -> Of:
    """Return the line that shows the first call of the hook that was not right, or what it should have been."""

    def line(saw: Saw, key: Key) -> str:
        n = _wrong(saw, key, "events") or 0
        pairs = zip(saw.models[n]["events"], key.wanted["events"][n], strict=True)
        is_layer, args, output, graph = next(pair for pair in pairs if not same(*pair))[wanted]
        module = LAYERS[n] if is_layer else "another module"
        return f"hook({module}, {show(args)}, {show(output)}), output.requires_grad == {graph}"

    return line


def _changed(saw: Saw, key: Key) -> list[str]:
    attributes = [name for model in saw.models for name in model["attributes"]]
    return [*(f"torch._dynamo.config.{name}" for name in saw.settings), *attributes]


_other_times = _if_fired(lambda model, key: model["fired"] != [1] * CALLS)
_silent = _if_fired(lambda model, key: model["fired"] == [0] * CALLS)
_cut = _right("outputs")  # where the values are right, it is the graph that is not
_CALL = f"compiled, handle = watched(model, {LAYERS[0]!r}, hook)"

EXERCISE = Exercise(
    PROBE,
    key=Key,
    given=_calls("events"),
    checks=[
        Check(
            "pair",
            ok=lambda saw, key: all(
                type(m["returned"]) is list and m["returned"][0] == "compiled" for m in saw.models
            ),
            essential=True,
            given=_CALL,
            expected=Say("pair"),
            got=[
                Say("one", when=lambda saw, key: type(saw.returned) is str),
                lambda saw, key: f"({', '.join(saw.returned)})",
            ],
            mistakes={
                "returns_nothing": lambda saw, key: saw.returned == "None",
                "returns_one": lambda saw, key: saw.returned in ("compiled", "handle", "model", "function"),
                "swapped": lambda saw, key: saw.returned == ["handle", "compiled"],
                "not_compiled": lambda saw, key: (
                    type(saw.returned) is list and saw.returned[0] in ("model", "function")
                ),
            },
        ),
        Check(
            "whole",
            ok=lambda saw, key: all(model["layer"] is not None for model in saw.models),
            essential=True,
            given=f"{_CALL}; compiled.get_submodule({LAYERS[0]!r})",
            expected=Say("the_layer"),
            got=Say("no_layer"),
            mistakes={"another_model": True},
        ),
        Check(
            "backend",
            "backend",
            want=lambda key: "eager",
            essential=True,
            given=_CALL,
            mistakes={"other_backend": True},
        ),
        Check(
            "runs_compiled",
            ok=_right("plain"),
            essential=True,
            given=_calls("plain"),
            expected=Say("runs"),
            got=Say("rests"),
            mistakes={"runs_plainly": _of(lambda model, key: model["plain"] > 0, "plain")},
        ),
        Check(
            "fires",
            ok=_right("events"),
            points=3,
            essential=True,
            expected=[Say("fires_once", when=_other_times), _event(wanted=True)],
            got=[
                Say("fired", when=_other_times, fired=_if_fired(lambda model, key: model["fired"])),
                _event(wanted=False),
            ],
            mistakes={
                "not_on_layer": lambda saw, key: (
                    _silent(saw, key) and not _if_fired(lambda model, key: model["registered"])(saw, key)
                ),
                "shares_code": lambda saw, key: (
                    _silent(saw, key) and _if_fired(lambda model, key: model["built"] == 0)(saw, key)
                ),
                "never_calls": _silent,
                "on_the_whole": _if_fired(lambda model, key: same(model["events"], key.whole)),
                "other_modules": _if_called(lambda got, wanted: len({is_layer for is_layer, *_ in got}) == 2),
                "a_copy": lambda saw, key: (
                    not saw.layer
                    and _if_called(lambda got, wanted: same([[True, *e[1:]] for e in got], wanted))(saw, key)
                ),
                "fires_twice": _if_fired(lambda model, key: model["fired"] == [2] * CALLS),
                "cuts_graph": _if_called(
                    lambda got, wanted: same([e[:3] for e in got], [e[:3] for e in wanted])
                ),
            },
        ),
        Check(
            "outputs",
            ok=_right("outputs", "attached"),
            points=1,
            given=_calls("outputs", "attached"),
            expected=[
                Say("graph", when=_cut, value=True),
                lambda saw, key: show(key.wanted["outputs"][_wrong(saw, key, "outputs")]),
            ],
            got=[
                Say("graph", when=_cut, value=False),
                _of(lambda model, key: show(model["outputs"]), "outputs"),
            ],
            mistakes={
                "drops_result": lambda saw, key: all(same(m["outputs"], key.plain) for m in saw.models),
                "cuts_graph": _cut,
            },
        ),
        Check(
            "tuples",
            "tuples",
            want=lambda key: 23 * key.x,
            points=1,
            given=Say("a_tuple"),
            expected="compiled(x) == {want}",
            got=[
                Say("tuple_raises", when=lambda saw, key: isinstance(saw.tuples, str)),
                "compiled(x) == {value}",
            ],
            mistakes={
                "drops_result": lambda saw, key: all(same(m["outputs"], key.plain) for m in saw.models),
                "only_tensors": lambda saw, key: same(saw.tuples, 5 * key.x),
            },
        ),
        Check(
            "rebuilt",
            ok=_right("rebuilt"),
            points=3,
            given=_calls("rebuilt"),
            expected=Say("none_rebuilt"),
            got=Say("rebuilt", times=_of(lambda model, key: model["rebuilt"], "rebuilt")),
            mistakes={"recompiles": True},
        ),
        Check(
            "handle",
            ok=lambda saw, key: saw.removed is True and saw.silent is True,
            points=1,
            given="handle.remove(); compiled(x)",
            expected=Say("silent"),
            got=[Say("no_handle", when=lambda saw, key: not saw.removed), Say("fires_still")],
            mistakes={"no_handle": lambda saw, key: not saw.removed, "stays_on": True},
        ),
        Check(
            "after",
            "after",
            want=lambda key: key.after,
            points=1,
            given=Say("after_change"),
            label="compiled(x)",
            mistakes={"a_copy": lambda saw, key: not saw.layer and same(saw.after, key.plain[0])},
        ),
        must_be("through", True, Say("hook_raises"), Say("comes_through"), Say("swallowed"), "swallows_it"),
        Check(
            "unchanged",
            ok=lambda saw, key: not _changed(saw, key),
            points=1,
            given=_CALL,
            expected=Say("unchanged"),
            got=Say("changed", what=lambda saw, key: _changed(saw, key)[0]),
            mistakes={"changes_settings": lambda saw, key: saw.settings, "changes_model": True},
        ),
    ],
    raises={
        "full_graph": r"^Unsupported|fullgraph=True",
        "dotted_name": r"^(AttributeError|KeyError): .*encoder\.fc|has no attribute 'encoder\.fc'",
        # Not those of torch.compile.
        "hook_arguments": r"(?<!compile\(\) )(?:missing \d+ required positional argument|takes (?:from \d+ to )?\d+ positional arguments? but)",
        **CALLS_NOW,
    },
)
