"""What decides about 14.5, `steering(model, number, direction, strength)`."""

from typing import Any

import torch

from hookedu.exercises.checks.common import gives_manager, must_be
from hookedu.exercises.checks.forward_hooks import CALLS_NOW, RETURNS_TUPLE, WRONG_ARGUMENTS
from hookedu.exercises.checks.lesson_14.shared import first_difference, near
from hookedu.exercises.checks.lesson_14.steered import Key
from hookedu.exercises.criteria import Check, Gives, Saw, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_14.steering import PROBE

_WITH = "with steering(model, {key.case.number}, direction, {key.case.strength}): "
_GIVEN = "model = {key.case.sizes.code}; direction = {key.case.direction}; ids = {key.case.ids}; " + _WITH
_WITHOUT = {"one_word": 0, "nested": 2, "inner_left": 2}  # the turn in which there is no such run
_INNER = "with steering(model, {key.case.second}, {key.case.turned}, {key.case.inner}): logits = model(ids)"


def _run(id: str, code: str, want: Any, mistakes: Any, points: int = 1, essential: bool = False) -> Check:
    """Require the logits of one run, where there is that run."""

    def got(saw: Saw, key: Key) -> Any:
        return getattr(saw, id)

    return Check(
        id,
        id,
        want=want,
        ok=lambda saw, key: key.case.turn == _WITHOUT.get(id) or near(got(saw, key), want(key)),
        points=points,
        essential=essential,
        given=code,
        equal=near,
        **first_difference("logits", got, want),
        mistakes=mistakes,
    )


def _zero(saw: Saw, key: Key) -> bool:
    return key.case.strength == 0


def _unsteered(saw: Saw, key: Key) -> bool:
    # A number added to all of a word's vector is lost in the next norm.
    return not _zero(saw, key) and near(saw.inside, key.plain) and near(saw.outputs, key.each_plain)


EXERCISE = Exercise(
    PROBE,
    key=Key,
    given=_GIVEN + "logits = model(ids)",
    checks=[
        gives_manager("steering(model, number, direction, strength)"),
        _run(
            "inside",
            _GIVEN + "logits = model(ids)",
            lambda key: key.steered,
            {
                # In turn 0 as well, nothing is added by an answer that adds nothing.
                "not_always": lambda saw, key: key.case.turn > 0 and _unsteered(saw, key),
                "no_return": lambda saw, key: _unsteered(saw, key) and saw.hooks > 0,
                "not_on_inside": lambda saw, key: _unsteered(saw, key) and saw.hooks == 0,
                "instead": Gives(lambda key: key.at("instead")),
                "no_strength": Gives(lambda key: key.run({key.case.number: key.case.direction})),
                "ignores_sign": lambda saw, key: key.case.strength < 0 and near(saw.inside, key.times(-1)),
                "wrong_sign": Gives(lambda key: key.times(-1)),
                "normalised": Gives(lambda key: key.run({key.case.number: key.case.strength * key.unit})),
                "relative": lambda saw, key: any(near(saw.inside, logits) for logits in key.relative),
                "twice": Gives(lambda key: key.times(2)),
                "all_blocks": Gives(lambda key: key.everywhere),
                "last_word": Gives(lambda key: key.words(slice(-1, None))),
                "first_word": Gives(lambda key: key.words(slice(0, 1))),
                "before_block": Gives(lambda key: key.at("before")),
                "middle": Gives(lambda key: key.at("middle")),
                "other_block": lambda saw, key: any(near(saw.inside, logits) for logits in key.elsewhere),
                "other_strength": lambda saw, key: key.multiple(saw.outputs[key.case.number]),
            },
            points=3,
            essential=True,
        ),
        _run(
            "others",
            _GIVEN + "model(ids); torch.set_grad_enabled(False); logits = model({key.case.others})",
            lambda key: key.run({key.case.number: key.push}, key.case.others),
            {
                "steers_once": lambda saw, key: (
                    near(saw.others, key.run({}, key.case.others))
                    and (key.case.turn == 0 or near(saw.one_word, key.plain[:, -1:]))
                ),
                "only_with_grad": lambda saw, key: near(saw.others, key.run({}, key.case.others)),
                "adds_up": lambda saw, key: near(
                    saw.others, key.run({key.case.number: 2 * key.push}, key.case.others)
                ),
            },
        ),
        _run(
            "one_word",
            _GIVEN + "model(ids[:, :-1], cache := Cache()); logits = model(ids[:, -1:], cache)",
            lambda key: key.steered[:, -1:],
            {
                "only_prompt": lambda saw, key: near(saw.one_word, key.words(slice(0, -1))[:, -1:]),
            },
        ),
        Check(
            "outputs",
            "outputs",
            want=lambda key: key.outputs_of_steered,
            ok=lambda saw, key: near(saw.outputs, key.outputs_of_steered),
            points=1,
            given=[Say("seen_outputs")],
            equal=near,
            expected=Say("steered_outputs"),
            got=Say("other_outputs"),
            mistakes={
                "next_input": lambda saw, key: near(
                    saw.outputs[key.case.number], key.each_plain[key.case.number]
                )
            },
        ),
        must_be(
            "identical",
            True,
            _GIVEN + "logits = model(ids)",
            Say("same_bits"),
            Say("other_bits"),
            "other_bits",
        ),
        must_be(
            "in_place", False, _GIVEN + "model(ids)", Say("kept_outputs"), Say("changed_outputs"), "in_place"
        ),
        Check(
            "gradient",
            ok=lambda saw, key: (
                saw.grad_inside
                and not saw.grad_switched_on
                and (key.case.turn != 1 or torch.allclose(saw.gradient, key.gradient, 1e-2, 1e-2))
            ),
            points=1,
            given=[
                Say("under_no_grad", when=lambda saw, key: saw.grad_switched_on),
                _GIVEN + "model(ids).sum().backward()",
            ],
            expected=[
                Say("no_graph", when=lambda saw, key: saw.grad_switched_on),
                Say("same_gradient"),
            ],
            got=[
                Say("graph", when=lambda saw, key: saw.grad_switched_on),
                Say("no_gradient", when=lambda saw, key: saw.gradient is None),
                Say("other_gradient"),
            ],
            mistakes={
                "grad_inside": lambda saw, key: saw.grad_switched_on,
                "no_grad_inside": lambda saw, key: not saw.grad_inside,
                "cuts_gradient": lambda saw, key: saw.gradient is None,
            },
        ),
        Check(
            "starts_inside",
            ok=lambda saw, key: saw.before is not False,
            points=1,
            given="manager = steering(model, ...); logits = model(ids)",
            expected=Say("unsteered"),
            got=Say("steered"),
            mistakes={"too_early": True},
        ),
        must_be("lost", False, _GIVEN + "...", Say("others_stay"), Say("others_gone"), "removes_others"),
        Check(
            "ends",
            ok=lambda saw, key: saw.after and saw.left <= 0 and saw.values,
            points=1,
            given=_GIVEN + "...; logits = model(ids)",
            expected=Say("as_before"),
            got=[
                Say("changed_weights", when=lambda saw, key: not saw.values),
                Say("hooks_left", when=lambda saw, key: saw.left > 0, value=lambda saw, key: saw.left),
                Say("not_as_before"),
            ],
            mistakes={
                "changes_weights": lambda saw, key: not saw.values,
                "never_removes": lambda saw, key: saw.left > 0,
            },
        ),
        Check(
            "direction",
            "direction",
            want=lambda key: key.case.direction,
            points=1,
            given=_GIVEN + "...",
            mistakes={"changes_direction": True},
        ),
        _run(
            "nested",
            _GIVEN + _INNER,
            lambda key: key.nested,
            {
                "replaces_outer": Gives(lambda key: key.inner),
                "ignores_inner": Gives(lambda key: key.steered),
            },
        ),
        _run(
            "inner_left",
            _GIVEN + _INNER.replace("logits = ", "") + "; logits = model(ids)",
            lambda key: key.steered,
            {
                "takes_outer_off": Gives(lambda key: key.plain, lambda key: key.inner),
                "inner_stays": Gives(lambda key: key.nested),
            },
        ),
        must_be(
            "after_nested",
            True,
            Say("both_ended"),
            Say("as_before"),
            Say("not_as_before"),
            "outer_stays",
        ),
        Check(
            "after_error",
            ok=lambda saw, key: not saw.left_by_error and saw.after_error is not False,
            points=1,
            given=_WITH + "raise {saw.left_after}",
            expected=Say("as_before"),
            got=[
                Say(
                    "hooks_left",
                    when=lambda saw, key: saw.left_by_error,
                    value=lambda saw, key: saw.left_by_error,
                ),
                Say("not_as_before"),
            ],
            mistakes={"no_finally": True},
        ),
        Check(
            "error_escapes",
            ok=lambda saw, key: saw.escaped is not False,
            points=1,
            given=_WITH + "raise {saw.raised}",
            expected=Say("error_escapes"),
            got=[Say("error_swallowed", when=lambda saw, key: saw.instead is None), "{saw.instead}"],
            mistakes={
                "swallows_error": lambda saw, key: saw.instead is None,
                "yields_twice": lambda saw, key: "generator didn't stop" in saw.instead,
                "replaces_error": True,
            },
        ),
    ],
    raises={**CALLS_NOW, **WRONG_ARGUMENTS, **RETURNS_TUPLE},
)
