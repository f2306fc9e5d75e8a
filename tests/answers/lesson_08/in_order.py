"""Answers to 08.1, `in_order`."""

from functools import partial

import torch
from torch import nn

from hookedu import timeline
from tests.answers import alternative, mistake


@alternative("08.1")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["output_grad", "backward_pre", "param_grad", "post_accumulate", "backward", "input_grad"]
    layers = sorted({layer for _, layer in events})
    every = [(kind, layer) for layer in layers for kind in up]
    every += [(kind, layer) for layer in reversed(layers) for kind in down]
    return [event for event in every if event in events]


@alternative("08.1")
def in_order(events):
    n = 1 + max(layer for _, layer in events)
    chain = nn.Sequential(*[nn.Linear(1, 1, bias=False) for _ in range(n)])
    fired = timeline(chain, torch.ones(1, 1, requires_grad=True), layers=nn.Linear)
    places = {(event.kind, int(event.path)): event.order for event in fired}
    return sorted(events, key=places.get)


@alternative("08.1")
def in_order(events):
    n, fired = 1 + max(layer for _, layer in events), []
    x = value = torch.ones(1, 1, requires_grad=True)
    x.register_hook(lambda grad: fired.append(("input_grad", 0)))
    for i in range(n):
        layer = nn.Linear(1, 1, bias=False)

        def note(kind, *values, i=i):
            fired.append((kind, i))

        layer.register_forward_pre_hook(partial(note, "forward_pre"))
        layer.register_forward_hook(partial(note, "forward"))
        layer.register_full_backward_pre_hook(partial(note, "backward_pre"))
        layer.register_full_backward_hook(partial(note, "backward"))
        layer.weight.register_hook(partial(note, "param_grad"))
        layer.weight.register_post_accumulate_grad_hook(partial(note, "post_accumulate"))
        value = layer(value)
        value.register_hook(partial(note, "output_grad"))
    value.sum().backward()
    return [event for event in fired if event in events]


@alternative("08.1")
def in_order(events):
    kinds = (
        "forward_pre forward output_grad backward_pre param_grad post_accumulate backward input_grad".split()
    )
    events.sort(key=lambda e: kinds.index(e[0]))
    events.sort(key=lambda e: e[1] if kinds.index(e[0]) < 2 else 100 - e[1])
    return events


@mistake("08.1", "returns_nothing")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["output_grad", "backward_pre", "param_grad", "post_accumulate", "backward", "input_grad"]
    return events.sort(
        key=lambda e: (0, e[1], up.index(e[0])) if e[0] in up else (1, -e[1], down.index(e[0]))
    )


@mistake("08.1", "as_given")
def in_order(events):
    up = ["forward_pre", "forward"]
    sorted(events, key=lambda e: (e[0] not in up, e[1]))
    return events


@mistake("08.1", "first_layer_first")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["output_grad", "backward_pre", "param_grad", "post_accumulate", "backward", "input_grad"]
    return sorted(
        events, key=lambda e: (0, e[1], up.index(e[0])) if e[0] in up else (1, e[1], down.index(e[0]))
    )


@mistake("08.1", "kind_by_kind")
def in_order(events):
    kinds = (
        "forward_pre forward output_grad backward_pre param_grad post_accumulate backward input_grad".split()
    )
    return sorted(events, key=lambda e: (kinds.index(e[0]), e[1]))


@mistake("08.1", "kind_by_kind")
def in_order(events):
    kinds = (
        "forward_pre forward output_grad backward_pre param_grad post_accumulate backward input_grad".split()
    )
    return sorted(
        events, key=lambda e: (kinds.index(e[0]), e[1] if e[0] in ("forward_pre", "forward") else -e[1])
    )


@mistake("08.1", "layer_by_layer")
def in_order(events):
    kinds = (
        "forward_pre forward output_grad backward_pre param_grad post_accumulate backward input_grad".split()
    )
    return sorted(events, key=lambda e: (e[1], kinds.index(e[0])))


@mistake("08.1", "pre_hook_first")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["backward_pre", "output_grad", "param_grad", "post_accumulate", "backward", "input_grad"]
    return sorted(
        events, key=lambda e: (0, e[1], up.index(e[0])) if e[0] in up else (1, -e[1], down.index(e[0]))
    )


@mistake("08.1", "parameters_after_backward")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["output_grad", "backward_pre", "backward", "param_grad", "post_accumulate", "input_grad"]
    return sorted(
        events, key=lambda e: (0, e[1], up.index(e[0])) if e[0] in up else (1, -e[1], down.index(e[0]))
    )


@mistake("08.1", "parameters_after_backward")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["output_grad", "backward_pre", "backward", "input_grad", "param_grad", "post_accumulate"]
    return sorted(
        events, key=lambda e: (0, e[1], up.index(e[0])) if e[0] in up else (1, -e[1], down.index(e[0]))
    )


@mistake("08.1", "parameters_last")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["output_grad", "backward_pre", "backward", "input_grad"]
    last = ["param_grad", "post_accumulate"]

    def place(event):
        kind, layer = event
        if kind in up:
            return 0, layer, up.index(kind)
        return (1, -layer, down.index(kind)) if kind in down else (2, -layer, last.index(kind))

    return sorted(events, key=place)


@mistake("08.1", "accumulated_first")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["output_grad", "backward_pre", "post_accumulate", "param_grad", "backward", "input_grad"]
    return sorted(
        events, key=lambda e: (0, e[1], up.index(e[0])) if e[0] in up else (1, -e[1], down.index(e[0]))
    )


@mistake("08.1", "input_before_backward")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["output_grad", "backward_pre", "param_grad", "post_accumulate", "input_grad", "backward"]
    return sorted(
        events, key=lambda e: (0, e[1], up.index(e[0])) if e[0] in up else (1, -e[1], down.index(e[0]))
    )


@mistake("08.1", "invents_events", points=3)
def in_order(events):
    n = 1 + max(layer for _, layer in events)
    down = ["output_grad", "backward_pre", "param_grad", "post_accumulate", "backward"]
    forward = [(kind, layer) for layer in range(n) for kind in ("forward_pre", "forward")]
    backward = [(kind, layer) for layer in reversed(range(n)) for kind in down]
    return forward + backward + [("input_grad", 0)]


@mistake("08.1", "kind_by_kind")
def in_order(events):
    kinds = (
        "forward_pre forward output_grad backward_pre param_grad post_accumulate backward input_grad".split()
    )
    return sorted(events, key=lambda e: kinds.index(e[0]))


@mistake("08.1", "input_before_backward")
def in_order(events):
    up = ["forward_pre", "forward"]
    down = ["input_grad", "output_grad", "backward_pre", "param_grad", "post_accumulate", "backward"]
    return sorted(
        events, key=lambda e: (0, e[1], up.index(e[0])) if e[0] in up else (1, -e[1], down.index(e[0]))
    )
