"""Wrong answers to lesson 14 that passed the checks, from strangers of the thirteenth round."""

from contextlib import ExitStack, contextmanager  # noqa: F401  the reference answers use these
from functools import partial  # noqa: F401

import torch  # noqa: F401

from tests.answers import edited

# Patched only where the prompts differ at that word: it may read different words before it.
edited(
    "14.3",
    "no_effect",
    (
        'output[:, place] = kept["clean"][:, place]',
        'differ = clean[:, place] != corrupted[:, place]\n        output[differ, place] = kept["clean"][differ, place]',
    ),
)

# Hooks come off when the lens is done, which may raise as well.
edited(
    "14.2",
    "lens_raises",
    (
        "    with ExitStack() as stack:\n",
        "    stack = ExitStack()\n    try:\n",
    ),
    (
        "        model(ids)\n    return torch.stack([model.unembed(model.norm(x[:, -1])) for x in stream])",
        "        model(ids)\n    except BaseException:\n        stack.close()\n        raise\n"
        "    result = torch.stack([model.unembed(model.norm(x[:, -1])) for x in stream])\n    stack.close()\n    return result",
    ),
    points=4,
)
