"""What decides about 09.3, `log_maps(folder, tag, pictures)`."""

from typing import Any

import torch

from hookedu.exercises.checks.lesson_09.shared import Mistakes, first_wrong, returned, same_list
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque, show
from hookedu.exercises.probes.lesson_09.log_maps import PROBE, Case
from hookedu.exercises.tools import same


def _alike(found: Any, wanted: torch.Tensor) -> bool:
    """Check whether a picture read back is this one, but for one of 256 levels: 0.2 may have become 50 / 255."""
    return found.shape == wanted.shape and bool((found - wanted).abs().max() < 1.5 / 255)


def _stretched(picture: torch.Tensor) -> torch.Tensor:
    return (picture - picture.min()) / (picture.max() - picture.min())


class _Key:
    """The pictures by step, those of the earlier run first, and what reading them back gives."""

    def __init__(self, case: Case) -> None:
        self.tag, earlier, new = case.tag, case.earlier, case.pictures
        self.pictures, self.earlier, self.new = earlier | new, list(earlier), list(new)
        self.counted = [[*self.earlier, *range(first, first + len(new))] for first in (0, 1)]
        self.rows = [(step, *picture.shape) for run in (earlier, new) for step, picture in run.items()]
        self.shape, self.last = new[self.new[0]].shape, new[self.new[-1]].shape
        self.other = [(1, *earlier[self.earlier[0]].shape)]


def _shown(saw: Any, key: _Key) -> int:
    return first_wrong(
        saw.pixels, key.pictures, lambda found, wanted: found is not None and _alike(found, wanted)
    )


def _set(rows: list[Any]) -> set[tuple]:
    return {*map(tuple, rows)}


_MISREAD: Mistakes = {
    "no_reload": Gives(lambda key: Opaque("KeyError")),
    "from_memory": Gives(lambda key: key.rows[len(key.earlier) :]),
    "width_first": Gives(lambda key: [(step, width, height) for step, height, width in key.rows]),
    "one_size": lambda saw, key: (
        [step for step, *_ in saw.result] == [step for step, *_ in key.rows]
        and len(_set([size for _, *size in saw.result])) == 1
    ),
    "other_tags": lambda saw, key: _set(saw.result) > _set(key.rows) or same(saw.result, key.other),
    "only_some": lambda saw, key: saw.result and _set(saw.result) < _set(key.rows),
    "merged": lambda saw, key: len(saw.result) < len(key.rows) and _set(saw.result) == _set(key.rows),
    "by_step": lambda saw, key: same(saw.result, sorted(key.rows)),
    "whole_events": lambda saw, key: isinstance(saw.result, list) and not isinstance(saw.result[0], list),
}

EXERCISE = Exercise(
    PROBE,
    key=_Key,
    given=Say("both_runs"),
    checks=[
        Check(
            "closed",
            "open",
            want=lambda key: 0,
            points=1,
            essential=True,
            given="log_maps(folder, {key.tag!r}, pictures)",
            expected=Say("left_open", n=0),
            got=Say("left_open", n=lambda saw, key: saw.open),
            mistakes={"not_closed": True},
        ),
        Check(
            "read_after_closing",
            "open_when_read",
            want=lambda key: 0,
            essential=True,
            given="log_maps(folder, {key.tag!r}, pictures)",
            expected=Say("open_at_reading", n=0),
            got=Say("open_at_reading", n=lambda saw, key: saw.open_when_read),
            mistakes={"read_too_early": True},
        ),
        Check(
            "steps",
            "steps_in_file",
            want=lambda key: {key.tag: key.earlier + key.new},
            ok=lambda saw, key: saw.steps_in_file[key.tag] == key.earlier + key.new,
            points=1,
            essential=True,
            mistakes={
                "tag_per_step": lambda saw, key: len(saw.steps_in_file) > len(key.new),
                "nothing_written": lambda saw, key: saw.steps_in_file[key.tag] == key.earlier,
                "no_step": lambda saw, key: saw.steps_in_file[key.tag] == key.earlier + [0] * len(key.new),
                "counts_steps": lambda saw, key: saw.steps_in_file[key.tag] in key.counted,
            },
        ),
        Check(
            "pixels",
            ok=lambda saw, key: all(_alike(saw.pixels.get(s, p), p) for s, p in key.pictures.items()),
            points=1,
            essential=True,
            given=lambda saw, key: f"pictures[{(step := _shown(saw, key))}] = {show(key.pictures[step])}",
            expected=Say("pixels_in_file", pixels=lambda saw, key: key.pictures[_shown(saw, key)]),
            got=Say("pixels_in_file", pixels=lambda saw, key: saw.pixels.get(_shown(saw, key))),
            mistakes={
                "transposed": lambda saw, key: all(
                    saw.pixels[step].shape == key.pictures[step].T.shape for step in key.new
                ),
                "stretched": lambda saw, key: all(
                    _alike(saw.pixels[step], _stretched(key.pictures[step])) for step in key.new
                ),
                "times_255": lambda saw, key: all(
                    torch.equal(saw.pixels[step] == 1, key.pictures[step] > 0) for step in key.new
                ),
            },
        ),
        returned("read", lambda key: key.rows, points=2, mistakes=_MISREAD, equal=same_list),
        Check(
            "all_read",
            "unread",
            want=lambda key: 0,
            essential=True,
            given="log_maps(folder, {key.tag!r}, pictures)",
            expected=Say("files_unread", n=0),
            got=Say("files_unread", n=lambda saw, key: saw.unread),
            mistakes={"not_read_back": True},
        ),
    ],
    raises={"wrong_format": r"size of input tensor and input format are different"},
)
