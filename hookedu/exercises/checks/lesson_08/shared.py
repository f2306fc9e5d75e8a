"""How a model was called, for the checks of lesson 08; observed by `Watch` in the probes."""

from collections.abc import Mapping

from hookedu.exercises.criteria import Of, Say

# What a message shows as got if not `model(x)` alone ran, with each output handed on.
HOW_CALLED = [
    Say("calls_of_copy", when=lambda saw, key: saw.copies),
    Say("no_call", when=lambda saw, key: not saw.called),
    Say("other_x", when=lambda saw, key: not all(saw.called)),
    Say("outputs_changed", when=lambda saw, key: not saw.handed_on),
    Say("runs", value=lambda saw, key: len(saw.called)),
]
NOT_AS_CALLED: Mapping[str, Of] = {
    "runs_copy": lambda saw, key: saw.copies and not saw.called,
    "calls_forward": lambda saw, key: not saw.copies and not saw.called,
    "other_input": lambda saw, key: not all(saw.called),
    "changes_outputs": lambda saw, key: not saw.handed_on,
}
