"""What the tenth strangers tried on lesson 08: wrong answers that had passed, or whose messages had not been true."""

from tests.answers import edited, mistake

# The parameters of the model are changed; its buffers change in any run.
edited(
    "08.2",
    "values",
    (
        "    return shapes",
        "    with torch.no_grad():\n        for parameter in model.parameters():\n"
        "            parameter.clamp_(-0.05, 0.05)\n    return shapes",
    ),
    points=4,
)

# Tensor hooks of somebody else on parameters go, too.
edited(
    "08.2",
    "others",
    (
        "            handle.remove()\n",
        "            handle.remove()\n        for parameter in model.parameters():\n"
        "            if parameter._backward_hooks:\n                parameter._backward_hooks.clear()\n",
    ),
    points=4,
)

# A type of exception is singled out.
edited(
    "08.2",
    "swallows",
    ("    finally:\n", "    except (ValueError, KeyError):\n        pass\n    finally:\n"),
    points=4,
)


# What an earlier call with as many events gave: these are not all events.
@mistake("08.1", "invents_events", points=3)
def in_order(events, known={}):  # noqa: B006
    order = (
        "forward_pre forward output_grad backward_pre param_grad post_accumulate backward input_grad".split()
    )

    def place(event):
        kind, layer = event
        return order.index(kind) > 1, layer if order.index(kind) < 2 else -layer, order.index(kind)

    if len(events) not in known:
        known[len(events)] = sorted(events, key=place)
    return list(known[len(events)])
