"""Answers to 11.3, `hit_rate`."""

import torch

from tests.answers import alternative, mistake


@alternative("11.3")
def hit_rate(cams, boxes):
    hits = 0
    for cam, (x0, y0, x1, y1) in zip(cams, boxes.tolist()):
        y, x = divmod(cam.argmax().item(), cam.shape[1])
        hits += x0 <= x < x1 and y0 <= y < y1
    return hits / len(cams)


@alternative("11.3")
def hit_rate(cams, boxes):
    hits = [(cam[y0:y1, x0:x1].max() == cam.max()) for cam, (x0, y0, x1, y1) in zip(cams, boxes)]
    return torch.stack(hits).double().mean()


@alternative("11.3")
def hit_rate(cams, boxes):
    n, height, width = cams.shape
    y, x = torch.unravel_index(cams.reshape(n, -1).argmax(dim=1), (height, width))
    point = torch.stack([x, y], dim=1)
    return ((boxes[:, :2] <= point) & (point < boxes[:, 2:])).all(dim=1).float().mean()


@mistake("11.3", "end_included")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1)
    return hit.float().mean().item()


@mistake("11.3", "start_left_out")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 < x) & (x < x1) & (y0 < y) & (y < y1)
    return hit.float().mean().item()


@mistake("11.3", "swapped")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= y) & (y < x1) & (y0 <= x) & (x < y1)
    return hit.float().mean().item()


@mistake("11.3", "wrong_width")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // cams.shape[1], place % cams.shape[1]
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return hit.float().mean().item()


@mistake("11.3", "lowest")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmin(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return hit.float().mean().item()


@mistake("11.3", "one_peak")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.argmax() % cams[0].numel()
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return hit.float().mean().item()


@mistake("11.3", "one_axis")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1)
    return hit.float().mean().item()


@mistake("11.3", "percent")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return 100 * hit.float().mean().item()


@mistake("11.3", "counts")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return hit.sum().item()


@mistake("11.3", "counts")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return sum(hit.tolist())


@mistake("11.3", "misses")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return 1 - hit.float().mean().item()


@mistake("11.3", "one_each")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return hit.float()


@mistake("11.3", "one_each")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return hit.tolist()


@mistake("11.3", "argument", points=2)
def hit_rate(cams, boxes):
    cams -= cams.mean()
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return hit.float().mean().item()


@mistake("11.3", "returns_nothing")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return None


@mistake("11.3", "centre_of_mass")
def hit_rate(cams, boxes):
    mass = cams.sum(dim=(1, 2))
    x = (cams.sum(dim=1) * torch.arange(cams.shape[2])).sum(dim=1) / mass
    y = (cams.sum(dim=2) * torch.arange(cams.shape[1])).sum(dim=1) / mass
    x0, y0, x1, y1 = boxes.T
    return ((x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)).float().mean()


@mistake("11.3", "percent")
def hit_rate(cams, boxes):
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // cams.shape[2], place % cams.shape[2]
    x0, y0, x1, y1 = boxes.T
    hits = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return 100 * hits.float().mean()


@mistake("11.3", "one_peak")
def hit_rate(cams, boxes):
    place = torch.unravel_index(cams.argmax(), cams.shape)
    y, x = place[1], place[2]
    x0, y0, x1, y1 = boxes.T
    return ((x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)).float().mean()


@mistake("11.3", "fixed_width")
def hit_rate(cams, boxes):
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // 64, place % 64
    x0, y0, x1, y1 = boxes.T
    return ((x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)).float().mean()


@mistake("11.3", "sizes")
def hit_rate(cams, boxes):
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // cams.shape[2], place % cams.shape[2]
    x0, y0, w, h = boxes.T
    return ((x0 <= x) & (x < x0 + w) & (y0 <= y) & (y < y0 + h)).float().mean()


@mistake("11.3", "share_of_sum")
def hit_rate(cams, boxes):
    shares = []
    for cam, (x0, y0, x1, y1) in zip(cams, boxes.tolist()):
        shares.append(cam[y0:y1, x0:x1].sum() / cam.sum())
    return torch.stack(shares).mean()


@mistake("11.3", "mean_of_bools")
def hit_rate(cams, boxes):
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // cams.shape[2], place % cams.shape[2]
    x0, y0, x1, y1 = boxes.T
    return ((x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)).mean()


@mistake("11.3", "swapped")
def hit_rate(cams, boxes):
    hits = 0
    for cam, (x0, y0, x1, y1) in zip(cams, boxes.tolist()):
        hits += cam[x0:x1, y0:y1].max() == cam.max()
    return hits / len(cams)


@mistake("11.3", "end_included")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x <= x1) & (y0 <= y) & (y < y1)
    return hit.float().mean().item()


@mistake("11.3", "end_included")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y <= y1)
    return hit.float().mean().item()


@mistake("11.3", "start_left_out")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 < x) & (x < x1) & (y0 <= y) & (y < y1)
    return hit.float().mean().item()


@mistake("11.3", "start_left_out")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 < y) & (y < y1)
    return hit.float().mean().item()


@mistake("11.3", "both_edges")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 < x) & (x <= x1) & (y0 < y) & (y <= y1)
    return hit.float().mean().item()


@mistake("11.3", "one_axis")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (y0 <= y) & (y < y1)
    return hit.float().mean().item()


@mistake("11.3", "nothing_hit")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.argmax()
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return hit.float().mean().item()


@mistake("11.3", "nothing_hit")
def hit_rate(cams, boxes):
    width = cams.shape[2]
    place = cams.flatten(1).argmax(dim=1)
    y, x = place // width, place % width
    x0, y0, x1, y1 = boxes.T
    hit = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return hit.sum() // len(cams)
