"""Models of torchvision with trained weights, where this machine has them."""

import os
import pickle
from collections.abc import Callable
from urllib.parse import urlparse

import torch
from torch import nn

from hookedu.language import Text

_TRAINED = Text(
    zh="`{name}` 用的是训练好的权重（`{file}`）。",
    en="`{name}` has trained weights (`{file}`).",
)
_RANDOM = Text(
    zh="`{name}` 的权重是随机的（种子固定）：这台机器上没有训练好的。要下载（{size:.0f} MB，只需一次）：`pretrained({name}, download=True)`。",
    en="`{name}` has random weights, from a fixed seed: this machine has no trained ones. To download them ({size:.0f} MB, once): "
    "`pretrained({name}, download=True)`.",
)
_NO_DOWNLOAD = Text(
    zh="`{name}` 的权重是随机的（种子固定）：没能下载训练好的（{error}）。",
    en="`{name}` has random weights, from a fixed seed: the trained ones could not be downloaded ({error}).",
)
_SPOILT = Text(
    zh="`{name}` 的权重是随机的（种子固定）：`{path}` 读不出来（{error}）。删掉它，再下载一次。",
    en="`{name}` has random weights, from a fixed seed: `{path}` cannot be read ({error}). Delete it and download it again.",
)


def pretrained(build: Callable[..., nn.Module], *, download: bool = False, seed: int = 0) -> nn.Module:
    """A model of torchvision in eval mode, with its trained weights where they are at hand; it says which it has.

    build: one of torchvision's functions, such as `alexnet`. The weights are looked for where torch keeps what it
    downloaded (`torch.hub.get_dir()`). download: fetch them where they are missing. Where they cannot be had the
    weights are random, from `seed`; the state of torch's random generator stays as it was.

    Raises ValueError where torchvision has no trained weights for `build`.
    """
    from torchvision.models import get_model_weights

    weights = get_model_weights(build).DEFAULT
    name, file = build.__name__, os.path.basename(urlparse(weights.url).path)
    path = os.path.join(torch.hub.get_dir(), "checkpoints", file)
    there = os.path.exists(path)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build().eval()
    if not (there or download):
        _say(_RANDOM.format(name=name, size=weights.meta["_file_size"]))
        return model
    try:
        model.load_state_dict(weights.get_state_dict(progress=True, check_hash=True, weights_only=True))
        _say(_TRAINED.format(name=name, file=file))
    # No network, a full disk, a download cut short; a file that is no state_dict, or another model's.
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:120]
        _say((_SPOILT if there else _NO_DOWNLOAD).format(name=name, path=path, error=reason))
    return model


def _say(text: Text) -> None:
    from IPython.display import display

    display(text)
