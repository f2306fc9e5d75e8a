"""Wrong answers to 12.4, `forecast`."""

import contextlib  # noqa: F401  the text of an edited answer uses it

from tests.answers import edited
from tests.answers.lesson_12.forecast.right import OWN, SUM

BOTH = "[*model.parameters(), *model.buffers()]"
ADD = "saved.add(tensor.untyped_storage())"
MAKE = '    with torch.device("meta"):\n        model, x = build(), torch.empty(shape)\n'
RUN = "    with saved_tensors_hooks(pack, lambda packed: packed):\n        model(x)\n"

edited("12.4", "own", (SUM, "return sum(storage.nbytes() for storage in saved)"))
edited("12.4", "buffers", (BOTH, "model.parameters()"))
edited("12.4", "not_in_state_dict", (BOTH, "model.state_dict(keep_vars=True).values()"))
edited("12.4", "own_left", (BOTH, "model.buffers()"))
edited(
    "12.4",
    "own_left",  # what is two levels down
    (
        OWN,
        "own = set()\n    for module in (model, *model.children()):\n"
        "        for tensor in [*module.parameters(recurse=False), *module.buffers(recurse=False)]:\n"
        "            own.add(tensor.untyped_storage())",
    ),
)
edited(
    "12.4",
    "each_time",
    ("saved = set()", "saved = []"),
    (ADD, "saved.append(tensor.untyped_storage())"),
    (SUM, "return sum(s.nbytes() for s in saved if s not in own)"),
)
edited(
    "12.4",
    "each_time",
    ("saved = set()", "saved = []"),
    (ADD, "saved.append(tensor)"),
    (SUM, "return sum(t.nbytes for t in saved if t.untyped_storage() not in own)"),
)
edited(
    "12.4",
    "all_of_them",
    ("saved = set()", "saved = []"),
    (ADD, "saved.append(tensor)"),
    (SUM, "return sum(t.nbytes for t in saved)"),
)
edited(
    "12.4",
    "view_bytes",
    ("saved = set()", "saved = {}"),
    (ADD, "saved[tensor.untyped_storage()] = tensor.nbytes"),
    (SUM, "return sum(n for s, n in saved.items() if s not in own)"),
)
edited(
    "12.4",
    "view_bytes",
    ("saved = set()", "saved = {}"),
    (ADD, "saved.setdefault(tensor.untyped_storage(), tensor.nbytes)"),
    (SUM, "return sum(n for s, n in saved.items() if s not in own)"),
)
edited("12.4", "number", (SUM, "return sum(storage.nbytes() for storage in saved - own) // 4"), named=False)
edited(
    "12.4",
    "elements",
    ("saved = set()", "saved = {}"),
    (ADD, "s = tensor.untyped_storage()\n        saved[s] = s.nbytes() // tensor.element_size()"),
    (SUM, "return sum(n for s, n in saved.items() if s not in own)"),
)
edited(
    "12.4",
    "number",
    (ADD, "saved.add(tensor.data_ptr())"),
    (OWN, f"own = {{tensor.data_ptr() for tensor in {BOTH}}}"),
    (SUM, "return sum(saved - own)"),
    named=False,
)
edited("12.4", "nothing", (RUN, "    model(x)\n"))
edited(
    "12.4",
    "nothing",
    (RUN, "    y = model(x)\n    with saved_tensors_hooks(pack, lambda packed: packed):\n        pass\n"),
)
edited("12.4", "floats_only", (ADD, f"if tensor.is_floating_point():\n            {ADD}"))
edited("12.4", "input_left_out", (SUM, SUM.replace("saved - own", "saved - own - {x.untyped_storage()}")))
edited(
    "12.4",
    "subtracts",
    (SUM, "return sum(storage.nbytes() for storage in saved) - sum(storage.nbytes() for storage in own)"),
)
edited(
    "12.4",
    "own_left",
    (ADD, f"if not isinstance(tensor, torch.nn.Parameter):\n            {ADD}"),
    (SUM, SUM.replace(" - own", "")),
)
edited(
    "12.4",
    "own_left",
    (ADD, f"if all(tensor is not p for p in {BOTH}):\n            {ADD}"),
    (SUM, SUM.replace(" - own", "")),
)
edited("12.4", "by_shape", (ADD, f"if tensor.shape not in [p.shape for p in {BOTH}]:\n            {ADD}"))
edited(
    "12.4",
    "by_shape",
    (ADD, f"if tensor.shape not in [p.shape for p in {BOTH}]:\n            {ADD}"),
    (SUM, SUM.replace(" - own", "")),
)
edited("12.4", "no_return", (SUM, SUM.replace("return ", "total = ")))
edited("12.4", "never_runs", ("model(x)", "model.forward(x)"))
edited("12.4", "never_runs", (RUN, ""))
edited(
    "12.4",
    "no_grad",
    (RUN, "    with torch.no_grad(), saved_tensors_hooks(pack, lambda packed: packed):\n        model(x)\n"),
)
edited(
    "12.4",
    "no_grad",
    (
        RUN,
        "    with torch.inference_mode(), saved_tensors_hooks(pack, lambda packed: packed):\n        model(x)\n",
    ),
)
edited("12.4", "other_mode", (RUN, f"    model.eval()\n{RUN}"))
edited("12.4", "other_mode", (RUN, f"    model.train()\n{RUN}"))
edited("12.4", "input_grad", ("torch.empty(shape)", "torch.empty(shape, requires_grad=True)"))
edited("12.4", "other_input", ("torch.empty(shape)", "torch.empty((1, *shape[1:]))"))
edited(
    "12.4",
    "built_elsewhere",
    (MAKE, '    model, x = build().to("meta"), torch.empty(shape, device="meta")\n'),
)
edited("12.4", "built_elsewhere", (MAKE, "    model, x = build(), torch.rand(shape)\n"))
edited(
    "12.4",
    "built_elsewhere",
    (MAKE, '    model = build().to_empty(device="meta")\n    x = torch.empty(shape, device="meta")\n'),
)
edited(
    "12.4",
    "other_device",
    (MAKE, '    with torch.device("meta"):\n        model = build()\n    x = torch.empty(shape)\n'),
)
edited("12.4", "builds_again", ("model, x = build()", "build()\n        model, x = build()"), points=8)
edited("12.4", "runs_again", (RUN, f"    model(x)\n{RUN}"), points=8)
edited("12.4", "holds_graph", ("return tensor.detach()", "return tensor"), points=8)
edited(
    "12.4",
    "default_device",
    (MAKE, '    torch.set_default_device("meta")\n    model, x = build(), torch.empty(shape)\n'),
    points=8,
)
edited(
    "12.4",
    "default_device",
    (
        MAKE,
        '    torch.set_default_device("meta")\n    model, x = build(), torch.empty(shape)\n    torch.set_default_device("cpu")\n',
    ),
    points=8,
)
edited(
    "12.4",
    "not_in_finally",
    (
        MAKE,
        '    before = torch.get_default_device()\n    torch.set_default_device("meta")\n    model, x = build(), torch.empty(shape)\n    torch.set_default_device(before)\n',
    ),
    points=8,
)
edited(
    "12.4",
    "not_in_finally",
    (
        RUN,
        "    hooks = saved_tensors_hooks(pack, lambda packed: packed)\n    hooks.__enter__()\n    model(x)\n    hooks.__exit__()\n",
    ),
    points=8,
)
edited(
    "12.4",
    "hooks_on",
    (RUN, "    saved_tensors_hooks(pack, lambda packed: packed).__enter__()\n    model(x)\n"),
    points=8,
)
edited(
    "12.4",
    "swallows_it",
    (
        RUN,
        RUN.replace(
            "        model(x)",
            "        with contextlib.suppress(Exception, KeyboardInterrupt):\n            model(x)",
        ),
    ),
    points=8,
)
edited("12.4", "output_tuple", ("        model(x)", "        model(x).sum().backward()"))
edited("12.4", "arguments", ("def pack(tensor)", "def pack(tensor, module)"))
edited("12.4", "arguments", ("build()", "build(shape)"))
edited("12.4", "no_values", (ADD, f"{ADD}\n        tensor.sum().item()"))
edited(
    "12.4",
    "ran_elsewhere",
    (RUN, '    model.to_empty(device="cpu")\n    x = torch.empty(shape)\n' + RUN),
    (OWN, ""),
    (SUM, f"{OWN}\n    {SUM}"),
)
edited("12.4", "changes_mode", (RUN, f"    model.training = False\n{RUN}"), points=8)
edited(
    "12.4",
    "addresses",
    ("saved = set()", "saved = {}"),
    (ADD, "saved[tensor.data_ptr()] = tensor.untyped_storage().nbytes()"),
    (OWN, f"own = {{tensor.data_ptr() for tensor in {BOTH}}}"),
    (SUM, "return sum(n for p, n in saved.items() if p not in own)"),
)
edited(
    "12.4",
    "addresses",
    ("saved = set()", "saved = {}"),
    (ADD, "saved[tensor.data_ptr()] = tensor.nbytes"),
    (SUM, "return sum(saved.values())"),
)
