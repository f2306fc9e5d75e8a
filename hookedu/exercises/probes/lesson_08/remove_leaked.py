"""What is observed of 08.3, `remove_leaked(model, handles)`: which hooks are on after it, and what it returns."""

from collections import OrderedDict
from functools import partial
from typing import Any, NamedTuple

from torch import nn
from torch.utils.hooks import RemovableHandle

from hookedu.exercises.conduct import OTHERS
from hookedu.exercises.probes.lesson_08.shared import (
    SomeonesHook,
    clear_global_hooks,
    is_on,
    plain,
)
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import linear, rebuilt, whole

Place = tuple[str, str]  # (path of the module, kind of the hook)
TOP, INSIDE = ("stem", "body", "head"), ("body.fc", "body.act")
# Serves as every hook of the exercise, some in a partial: only handles tell them apart.
_look = SomeonesHook()


class Case(NamedTuple):
    """A model, and the places and handles of the hooks on it whose handles are known, and of the leaked hooks."""

    model: nn.Module
    known: list[Place]
    leaked: list[Place]
    known_handles: list[RemovableHandle]
    leaked_handles: list[RemovableHandle]


def make_case(rng: Draw) -> Case:
    """Return a case whose first leaked hook is a twin of the first known one, but is registered before it.

    Their module carries another leaked hook. Inside `body`, leaked and known hooks are on different modules, the leaked
    of each kind and two of one, which are partials. In turn 1 the model itself has leaked hooks, too, one of them of
    loading; in turn 2 none are leaked; in turn 3 no handle is known, so that all are.
    """
    known_inside, other = rng.sample(INSIDE, 2)
    known = [(rng.choice(TOP), "forward"), (known_inside, "backward")]
    known += rng.sample([(path, kind) for path in TOP for kind in ("forward_pre", "backward")], 2)
    leaked = [known[0], (known[0][0], "backward")]
    leaked += [(other, kind) for kind in ("forward", "forward_pre", "forward", "backward", "backward_pre")]
    leaked += rng.sample([(path, "forward_pre") for path in TOP], rng.randint(0, 2))
    leaked += [("", "forward"), ("", "backward_pre"), ("", "load_state_dict_post")] if rng.turn == 1 else []
    leaked = leaked if rng.turn != 2 else []
    body = nn.Sequential(OrderedDict(fc=linear(whole(rng, 4).reshape(2, 2)), act=nn.ReLU()))
    model = nn.Sequential(OrderedDict(stem=nn.Identity(), body=body, head=nn.Identity()))
    places = [(place, False) for place in known] + [(place, True) for place in leaked]
    rng.shuffle(places)
    twins = [n for n, (place, _) in enumerate(places) if place == known[0]]
    for n, is_leaked in zip(twins, (True, False) if leaked else (False,), strict=True):
        places[n] = (known[0], is_leaked)
    # Some leaked hooks are newer than all those known; the twin is older, and of the same kind as one of them.
    places.sort(key=lambda place: place[0] in [(other, "forward"), (other, "backward_pre")])
    places = [(place, is_leaked or rng.turn == 3) for place, is_leaked in places]
    known, leaked = ([p for p, is_leaked in places if is_leaked == which] for which in (False, True))
    case = Case(model, known, leaked, [], [])
    for (path, kind), is_leaked in places:
        register = f"register_{kind.replace('backward', 'full_backward')}_hook"
        hook = partial(_look) if path in INSIDE and kind == "forward" else _look
        handle = getattr(model.get_submodule(path), register)(hook)
        (case.leaked_handles if is_leaked else case.known_handles).append(handle)
    return case


def observe(remove_leaked: Any, case: Case) -> dict[str, Any]:
    """Let it run; count the hooks that are left and lost, and the handles that are left in the list.

    If all is right so far, let it run again, now that no hook is needed any more.
    """
    clear_global_hooks()
    handles = list(case.known_handles)
    found = _in_any_order(remove_leaked(case.model, handles))
    on = [is_on(handle) for handle in case.leaked_handles]
    saw = {
        "found": found,
        "left": sum(on),
        "on": on,
        "lost": sum(not is_on(handle) for handle in case.known_handles),
        "handles": len(handles),
    }
    right = not saw["left"] and not saw["lost"]
    return saw | {"again": _in_any_order(remove_leaked(case.model, [])) if right else None}


def _in_any_order(found: Any) -> Any:
    found = plain(found)
    names = isinstance(found, list | tuple) and all(isinstance(name, str) for name in found)
    return rebuilt(found, sorted(found)) if names else found


PROBE = Probe("08.3", "remove_leaked", make_case, observe, cases=4, leaves=(OTHERS,))
