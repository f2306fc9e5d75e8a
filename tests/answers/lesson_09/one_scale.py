"""Answers to 09.2, `one_scale`."""

import math

import torch
from torchvision.utils import make_grid

from tests.answers import alternative, mistake


@alternative("09.2")
def one_scale(maps, columns):
    """Makes the range 1 before it goes to make_grid, which divides by at least 1e-5."""
    span = maps.max() - maps.min()
    scaled = (maps - maps.min()) / span.where(span > 0, 1.0)
    return make_grid(scaled[:, None], nrow=columns, padding=0)[0]


@alternative("09.2")
def one_scale(maps, columns):
    C, H, W = maps.shape
    picture = torch.zeros(-(-C // columns) * H, columns * W)
    span = (maps.max() - maps.min()).item() or 1.0
    for i in range(C):
        r, c = divmod(i, columns)
        picture[r * H : (r + 1) * H, c * W : (c + 1) * W] = (maps[i] - maps.min()) / span
    return picture


@mistake("09.2", "per_map")
def one_scale(maps, columns):
    return make_grid(maps[:, None], nrow=columns, padding=0, normalize=True, scale_each=True)[0]


@mistake("09.2", "no_shift")
def one_scale(maps, columns):
    return make_grid(maps[:, None] / maps.max(), nrow=columns, padding=0)[0]


@mistake("09.2", "by_size")
def one_scale(maps, columns):
    return make_grid(maps[:, None] / maps.abs().max(), nrow=columns, padding=0)[0]


@mistake("09.2", "only_positive")
def one_scale(maps, columns):
    return make_grid(maps[:, None].relu() / maps.max(), nrow=columns, padding=0)[0]


@mistake("09.2", "pads_first")
def one_scale(maps, columns):
    picture = make_grid(maps[:, None], nrow=columns, padding=0)[0]
    return (picture - picture.min()) / (picture.max() - picture.min())


@mistake("09.2", "column_by_column")
def one_scale(maps, columns):
    C, H, W = maps.shape
    rows = math.ceil(C / columns)
    picture = torch.zeros(rows * H, columns * W)
    scaled = (maps - maps.min()) / (maps.max() - maps.min())
    for i in range(C):
        c, r = divmod(i, rows)
        picture[r * H : (r + 1) * H, c * W : (c + 1) * W] = scaled[i]
    return picture


@mistake("09.2", "rows_for_columns")
def one_scale(maps, columns):
    return make_grid(maps[:, None], nrow=math.ceil(len(maps) / columns), padding=0, normalize=True)[0]


@mistake("09.2", "drops_rest")
def one_scale(maps, columns):
    scaled = (maps - maps.min()) / (maps.max() - maps.min())
    rows = [torch.cat(list(scaled[r * columns : (r + 1) * columns]), 1) for r in range(len(maps) // columns)]
    return torch.cat(rows)


@mistake("09.2", "forgot_permute")
def one_scale(maps, columns):
    C, H, W = maps.shape
    rows = math.ceil(C / columns)
    tiles = torch.zeros(rows * columns, H, W)
    tiles[:C] = (maps - maps.min()) / (maps.max() - maps.min())
    return tiles.reshape(rows * H, columns * W)


@mistake("09.2", "to_255")
def one_scale(maps, columns):
    return 255 * make_grid(maps[:, None], nrow=columns, padding=0, normalize=True)[0]


@mistake("09.2", "to_255")
def one_scale(maps, columns):
    return (255 * make_grid(maps[:, None], nrow=columns, padding=0, normalize=True)[0]).to(torch.uint8)


@mistake("09.2", "gaps")
def one_scale(maps, columns):
    return make_grid(maps[:, None], nrow=columns, normalize=True)[0]


@mistake("09.2", "three_channels")
def one_scale(maps, columns):
    return make_grid(maps[:, None], nrow=columns, padding=0, normalize=True)


@mistake("09.2", "divides_by_zero", points=4)
def one_scale(maps, columns):
    scaled = (maps - maps.min()) / (maps.max() - maps.min())
    return make_grid(scaled[:, None], nrow=columns, padding=0)[0]


@mistake("09.2", "in_place", points=4)
def one_scale(maps, columns):
    maps -= maps.min()
    if maps.max() > 0:
        maps /= maps.max()
    return make_grid(maps[:, None], nrow=columns, padding=0)[0]


@mistake("09.2", "returns_nothing")
def one_scale(maps, columns):
    picture = make_grid(maps[:, None], nrow=columns, padding=0, normalize=True)[0]
