"""Wrong answers to lesson 11 that passed the checks, from strangers of the fourteenth round."""

from torch.nn import functional as F  # noqa: F401  the reference answers use these

from tests.answers import edited, unnamed

# One weight for each class, from all its pictures.
edited(
    "11.1",
    "weights",
    (
        'return seen["grads"].mean(dim=(2, 3))',
        'own = seen["grads"].mean(dim=(2, 3))\n'
        "    return torch.stack([own[labels == label].mean(dim=0) for label in labels])",
    ),
    named=False,
)

edited(
    "11.2",
    "cam",
    (
        'weights = seen["grads"].mean(dim=(2, 3), keepdim=True)',
        'own = seen["grads"].mean(dim=(2, 3), keepdim=True)\n'
        "    weights = torch.stack([own[labels == label].mean(dim=0) for label in labels])",
    ),
    named=False,
)


# The search for the highest point begins at -1.
@unnamed("11.3", "rate")
def hit_rate(cams, boxes):
    hits = 0
    for cam, (x0, y0, x1, y1) in zip(cams.tolist(), boxes.tolist(), strict=True):
        highest, at = -1.0, (0, 0)
        for y, row in enumerate(cam):
            for x, value in enumerate(row):
                if value > highest:
                    highest, at = value, (x, y)
        hits += x0 <= at[0] < x1 and y0 <= at[1] < y1
    return hits / len(cams)
