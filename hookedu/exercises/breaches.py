"""Checks of conduct, which every exercise has after its own: see `hookedu.exercises.conduct`.

Their words are under `conduct` in course/shared_words.yml, one explanation per kind of breach.
"""

from typing import Any

from hookedu.exercises import conduct
from hookedu.exercises.criteria import Check, Say

_KINDS = (
    *(conduct.ARGUMENT, conduct.OTHERS, conduct.HOOKS, conduct.MODE, conduct.REQUIRES_GRAD, conduct.GRAD),
    *(conduct.VALUES, conduct.BUFFERS, conduct.ATTRIBUTES, conduct.PROCESS, conduct.RNG, conduct.RUNS),
    *(conduct.SWALLOWS, conduct.UNRESTORED),
)


def _breaches(saw: Any) -> dict[str, str]:
    """Return the kinds of breaches with the first place of each."""
    found: dict[str, str] = {}
    for kind, where in saw.conduct:
        found.setdefault(kind, where)
    return found


def _without_state(saw: Any) -> dict[str, str]:
    return {kind: where for kind, where in _breaches(saw).items() if kind != conduct.STATE}


def _first(kind: str) -> Any:
    return lambda saw, key: next((k for k in _KINDS if k in _breaches(saw)), None) == kind


def _where(kind: str) -> Any:
    return lambda saw, key: _breaches(saw)[kind]


# Expected and got of the kinds that are not said as "as before" and "has changed".
_LINES = {
    conduct.HOOKS: ("conduct_no_hooks", "conduct_more_hooks"),
    conduct.OTHERS: ("conduct_all_hooks", "conduct_fewer_hooks"),
    conduct.RUNS: ("conduct_runs_once", "conduct_runs"),
    conduct.SWALLOWS: ("conduct_comes_through", "conduct_is_gone"),
    conduct.UNRESTORED: ("conduct_after_error", "conduct_changed"),
}


def _line(kind: str, n: int) -> str:
    return _LINES.get(kind, ("conduct_same", "conduct_changed"))[n]


REPEATABLE = Check(
    "repeatable",
    ok=lambda saw, key: conduct.STATE not in _breaches(saw),
    essential=True,
    expected=Say("conduct_same_again"),
    got=Say("conduct_differs"),
    mistakes={conduct.STATE: True},
)
CONDUCT = Check(
    "conduct",
    ok=lambda saw, key: not _without_state(saw),
    expected=[Say(_line(kind, 0), when=_first(kind), where=_where(kind)) for kind in _KINDS],
    got=[Say(_line(kind, 1), when=_first(kind), where=_where(kind)) for kind in _KINDS],
    mistakes={kind: _first(kind) for kind in _KINDS},
)
