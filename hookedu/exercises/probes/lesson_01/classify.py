"""What is observed of 01.1, `classify(tensors)`: its result, and whether it changed a tensor."""

from typing import Any

import torch

from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies, whole

Case = dict[str, tuple[str, torch.Tensor]]


def make_case(rng: Draw) -> Case:
    """Return tensors and how each was made, by name. Names and order are random and reveal nothing."""
    w, data = whole(rng, 2).requires_grad_(), whole(rng, 2)
    with torch.no_grad():
        quiet = 2 * w
    made = [
        ("torch.tensor([...], requires_grad=True)", w),
        ("torch.nn.Parameter(torch.ones(2))", torch.nn.Parameter(torch.ones(2))),
        ("(2 * data).requires_grad_()", (2 * data).requires_grad_()),
        ("2 * w", 2 * w),
        ("w.double()", w.double()),
        ("(w * data).sum()", (w * data).sum()),
        ("torch.tensor([...])", data),
        ("w.detach()", w.detach()),
        ("2 * w, under torch.no_grad()", quiet),
    ]
    if rng.turn:  # flags and gradients in further combinations; one tensor under two names
        used = [torch.ones(2, 2, requires_grad=True) for _ in range(2)]
        torch.stack(used).sum().backward()
        frozen, tied = (
            torch.nn.Parameter(torch.ones(2), requires_grad=False),
            torch.nn.Parameter(torch.ones(2)),
        )
        made += [
            *[("tied = torch.nn.Parameter(torch.ones(2))", tied)] * 2,
            ("torch.nn.Parameter(torch.ones(2), requires_grad=False)", frozen),
            ("torch.ones(2, 2, requires_grad=True); used.sum().backward()", used[0]),
            (
                "torch.ones(2, 2, requires_grad=True); used.sum().backward(); used.requires_grad_(False)",
                used[1],
            ),
            ("w[0]", w[0]),
            ("w.view(2, 1)", w.view(2, 1)),
            ("w.clone()", w.clone()),
            ("torch.tensor(2.0).requires_grad_()", torch.tensor(2.0).requires_grad_()),
            ("torch.zeros(2, requires_grad=True)", torch.zeros(2, requires_grad=True)),
            # Views that are leaves, since they were cut from what requires no gradient; and dtypes that never do.
            ("torch.ones(3)[:2].requires_grad_()", torch.ones(3)[:2].requires_grad_()),
            ("w.detach()[:1].requires_grad_()", w.detach()[:1].requires_grad_()),
            ("torch.arange(2)", torch.arange(2)),
            ("data > 0", data > 0),
        ]
        used[1].requires_grad_(False)
    rng.shuffle(made)
    names = [f"t{n}" for n in rng.sample(range(10, 100), len(made))]
    return dict(zip(names, made, strict=True))


def observe(classify: Any, case: Case) -> dict[str, Any]:
    """Classify the tensors; `changed` is the name of the first whose requires_grad differs afterwards."""
    tensors = {name: tensor for name, (_, tensor) in case.items()}
    flags = {name: tensor.requires_grad for name, tensor in tensors.items()}
    result = copies(classify(dict(tensors)))
    if isinstance(result, dict):  # a word may be of a subclass of str, such as a StrEnum
        result = {
            name: str.__str__(word) if issubclass(type(word), str) else word for name, word in result.items()
        }
    changed = next((name for name, tensor in tensors.items() if tensor.requires_grad != flags[name]), None)
    return {"result": result, "changed": changed, "was": flags[changed] if changed else None}


PROBE = Probe("01.1", "classify", make_case, observe, cases=3)
