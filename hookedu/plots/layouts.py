"""What the dimensions of a tensor are: one letter for each, as in "NCHW" for feature maps or "NTC" for tokens.

A shape alone does not tell 4 channels of 17×32 pixels from 4 samples of 17 tokens with 32 features. The module that
made the tensor mostly does: see `layout_of`. Where it does not, the plots take a `layout` from their caller.
"""

import re

from torch import nn

from hookedu.language import Text

NAMES = {
    "N": "sample",
    "C": "feature",
    "T": "token",
    "L": "position",  # of a signal, as in Conv1d
    "D": "depth",
    "H": "row",
    "W": "column",
    "A": "head",
    "Q": "query",
    "K": "key",
    "S": "state",  # of one layer and direction of a recurrent network
}
_IMAGES = ("", "W", "HW", "CHW", "NCHW", "NCDHW")  # by the number of dimensions
_BATCHES = ("", "C", "NC", "NTC", "NCHW", "NCDHW")
_SPACE = {"1": "L", "2": "HW", "3": "DHW"}
_ATTENTION = re.compile(r"attn|attention", re.IGNORECASE)
_SEQUENCES = (
    nn.RNNBase,
    nn.MultiheadAttention,
    nn.Transformer,
    nn.TransformerEncoder,
    nn.TransformerDecoder,
    nn.TransformerEncoderLayer,
    nn.TransformerDecoderLayer,
)


def layout_of(dimensions: int, module: nn.Module | None = None, place: str = "", batched: bool = True) -> str:
    """Return the layout of a tensor, "" if it has more than 5 dimensions.

    Parameters
    ----------
    dimensions : int
        How many the tensor has.
    module : nn.Module, optional
        The module that returned it. Those of `torch.nn` with "1d", "2d" or "3d" in their names tell maps with and
        without a batch apart, recurrent ones and attention know whether the batch comes first.
    place : str
        The code that reaches the tensor in a structure: "[1]", ".attentions[0]".
    batched : bool
        Whether a tensor of 2 or 3 dimensions that no module and no place explains is a batch, of features or of tokens,
        and not an image or the channels of one.
    """
    if dimensions > 5:
        return ""
    weights = isinstance(module, nn.MultiheadAttention) and place == "[1]"
    if dimensions == 4 and (weights or _ATTENTION.search(place)):
        return "NAQK"
    if dimensions in (2, 3) and weights:
        return "NQK"[3 - dimensions :]
    if isinstance(module, nn.RNNBase) and place.startswith("[1]") and dimensions in (2, 3):
        return "SNC" if dimensions == 3 else "SC"
    if isinstance(module, _SEQUENCES) and dimensions in (2, 3):
        first = next((m.batch_first for m in module.modules() if hasattr(m, "batch_first")), True)
        return "TC" if dimensions == 2 else "NTC" if first else "TNC"
    if type(module) in (nn.LayerNorm, nn.Linear) and dimensions == 4:  # they work on the last dimension
        return "NHWC"
    space = _SPACE.get(_space(module), "")
    if space and dimensions - len(space) in (1, 2):
        return "NC"[len(space) + 2 - dimensions :] + space
    return (_BATCHES if batched else _IMAGES)[dimensions]


def _space(module: nn.Module | None) -> str:
    """Return the number in the name of a class such as Conv2d, also of one that is derived from it; "" if there is none."""
    names = [
        kind.__name__ for kind in type(module).__mro__ if kind.__module__.startswith("torch.nn.modules.")
    ]
    return next((name[-2] for name in names if re.search(r"[123]d$", name)), "")


def check(layout: str, dimensions: int) -> None:
    """Raise ValueError if the letters do not describe a tensor with so many dimensions."""
    letters = {*layout}
    too_many = len(letters - {*"ND"}) > 3  # two for an image, one for its tiles
    if not len(layout) == len(letters) == dimensions or too_many or not letters <= {*NAMES}:
        known = ", ".join(f"{letter} {name}" for letter, name in NAMES.items())
        raise ValueError(str(BAD_LAYOUT.format(layout=layout, n=dimensions, known=known)))


BAD_LAYOUT = Text(
    zh="`layout={layout!r}` 不能描述一个 {n} 维张量：每一维一个字母，各不相同，可用的有 {known}",
    en="`layout={layout!r}` does not describe a tensor of {n} dimensions: it takes one letter for each, all different, "
    "out of {known}",
)
