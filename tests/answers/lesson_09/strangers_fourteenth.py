"""What the fourteenth strangers tried on lesson 09: maps of one number, and a tag that begins another."""

from tests.answers import edited

edited(
    "09.2",
    "divides_by_zero",
    (
        "(maps - low) / (high - low) if high > low else torch.zeros_like(maps)",
        "torch.zeros_like(maps) if maps.std() == 0 else (maps - low) / (high - low)",
    ),
    points=4,
)
edited(
    "09.3",
    "other_tags",
    (
        "for event in reader.Images(tag)]",
        'for name in reader.Tags()["images"] if name.startswith(tag) for event in reader.Images(name)]',
    ),
)
