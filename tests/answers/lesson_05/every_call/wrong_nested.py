"""Wrong answers to 05.5, `every_call`: what they do to the tensors of a nested output."""

from tests.answers import edited

_TUPLE = "            return tuple(detached(item) for item in value)\n"
_LIST = "            return [detached(item) for item in value]\n"
_DICT = "            return {key: detached(item) for key, item in value.items()}\n"

edited("05.5", "detaches_nested", ("append(detached(output))", "append(output.detach())"), points=8)
edited(
    "05.5",
    "detaches_nested",
    (
        "append(detached(output))",
        "append(tuple(o.detach() for o in output) if type(output) is tuple else detached(output))",
    ),
    points=8,
)
edited(
    "05.5",
    "detaches_nested",
    ("if isinstance(value, torch.Tensor):", "if not isinstance(value, dict | list | tuple):"),
    points=8,
)
edited(
    "05.5",
    "skips_nested",
    (
        "        seen[name].append",
        "        if isinstance(output, torch.Tensor):\n            seen[name].append",
    ),
    points=8,
)
edited(
    "05.5",
    "attached_inside",
    ("append(detached(output))", "append(output.detach() if torch.is_tensor(output) else output)"),
    points=8,
)
edited("05.5", "attached_inside", (_LIST, "            return value\n"), points=8)
edited(
    "05.5",
    "keeps_part",
    (
        "append(detached(output))",
        "append(output.detach() if torch.is_tensor(output) else output[0].detach())",
    ),
    points=8,
)
edited(
    "05.5",
    "keeps_part",
    (
        "        seen[name].append",
        "        while not torch.is_tensor(output):\n            output = next(iter(output.values() if isinstance(output, dict) else output))\n        seen[name].append",
    ),
    points=8,
)
edited("05.5", "other_types", (_TUPLE, _LIST), points=8)
edited("05.5", "other_types", (_LIST, _TUPLE), points=8)
edited("05.5", "keys_lost", (_DICT, "            return [*map(detached, value)]\n"), points=8)
edited("05.5", "keys_lost", (_DICT, "            return (*map(detached, value.values()),)\n"), points=8)
edited(
    "05.5",
    "other_structure",
    (_TUPLE, "            return tuple(detached(item) for item in value if item is not None)\n"),
    points=8,
)
edited(
    "05.5",
    "other_structure",
    ("    def detached", "    def tensors"),
    (
        f"            return value.detach()\n        if isinstance(value, dict):\n{_DICT}        if isinstance(value, list):\n"
        f"{_LIST}        if isinstance(value, tuple):\n{_TUPLE}        return value\n",
        "            yield value.detach()\n        elif isinstance(value, dict | tuple | list):\n"
        "            for item in value.values() if isinstance(value, dict) else value:\n"
        "                yield from tensors(item)\n",
    ),
    (
        "        seen[name].append(detached(output))\n",
        "        found, kind = [*tensors(output)], type(output)\n"
        "        one = dict(enumerate(found)) if kind is dict else tuple(found) if kind is tuple else found[0]\n"
        "        seen[name].append(one)\n",
    ),
    points=8,
)
edited(
    "05.5",
    "keys_lost",
    (
        f"        if isinstance(value, dict):\n{_DICT}        if isinstance(value, list):\n"
        f"{_LIST}        if isinstance(value, tuple):\n{_TUPLE}",
        "        if isinstance(value, list):\n            return [*map(detached, value)]\n"
        "        if hasattr(value, '__iter__') and not isinstance(value, str):\n"
        "            return tuple(map(detached, value))\n",
    ),
    points=8,
)
