"""Torchvision models with trained weights, if this machine has them."""

import os
import pickle
from collections.abc import Callable
from inspect import signature
from typing import Any, cast
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
    """Return a torchvision model in evaluation mode, with its trained weights if they are available.

    The weights are torchvision's default ones for this model, from torch's download cache (``checkpoints`` in
    ``torch.hub.get_dir()``). If they cannot be loaded, the weights are random but reproducible. A printed
    message says which weights the model has, and if they are random, why.

    Parameters
    ----------
    build : callable
        A model builder of ``torchvision.models``, such as ``resnet18``.
    download : bool, default: False
        Download the weights if they are not in the cache. If the download fails, the weights are random.
    seed : int, default: 0
        Seed of the random weights. The global random number generator of torch is not affected.

    Returns
    -------
    torch.nn.Module
        The model, on the CPU and in evaluation mode.

    Raises
    ------
    ValueError
        If torchvision has no trained weights for ``build``.

    Notes
    -----
    Detection and segmentation builders of torchvision would download an ImageNet backbone by themselves; here
    they are asked for none.

    Examples
    --------
    >>> import torch
    >>> from torchvision.models import squeezenet1_1
    >>> from hookedu import pretrained
    >>> model = pretrained(squeezenet1_1)
    `squeezenet1_1` ...
    `squeezenet1_1` has ... weights...
    >>> model(torch.rand(1, 3, 224, 224)).shape
    torch.Size([1, 1000])
    """
    from torchvision.models import get_model_weights

    weights = get_model_weights(build)["DEFAULT"]
    name, file = build.__name__, os.path.basename(urlparse(weights.url).path)
    path = os.path.join(torch.hub.get_dir(), "checkpoints", file)
    there = os.path.exists(path)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        # Detection and segmentation models would fetch a backbone, whatever `download` says.
        without = {"weights_backbone": None} if "weights_backbone" in signature(build).parameters else {}
        model = build(**without).eval()
    if not (there or download):
        _say(_RANDOM.format(name=name, size=weights.meta["_file_size"]))
        return model
    try:
        model.load_state_dict(weights.get_state_dict(progress=True, check_hash=True, weights_only=True))
        if hasattr(model, "transform_input"):
            # As torchvision sets it together with the trained weights of GoogLeNet and Inception.
            cast(Any, model).transform_input = True
        _say(_TRAINED.format(name=name, file=file))
    # No network, a full disk, an incomplete download; a file that is not a state_dict, or that of another
    # model.
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:120]
        _say((_SPOILT if there else _NO_DOWNLOAD).format(name=name, path=path, error=reason))
    return model


def _say(text: Text) -> None:
    from IPython.display import display

    display(text)
