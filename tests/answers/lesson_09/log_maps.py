"""Answers to 09.3, `log_maps`."""

import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter

from tests.answers import alternative, edited, mistake


@alternative("09.3")
def log_maps(folder, tag, pictures):
    writer = SummaryWriter(log_dir=folder)
    try:
        for step in sorted(pictures):
            writer.add_image(tag, pictures[step][None], global_step=step)
    finally:
        writer.close()
    reader = EventAccumulator(folder, size_guidance={"images": 1000})
    reader.Reload()
    return [[event.step, event.height, event.width] for event in reader.Images(tag)]


@alternative("09.3")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, (255 * picture).to(torch.uint8), step, dataformats="HW")
    events = EventAccumulator(str(folder), {"images": 0}).Reload().Images(tag)
    return [(e.step, e.height, e.width) for e in events]


@mistake("09.3", "not_closed")
def log_maps(folder, tag, pictures):
    writer = SummaryWriter(folder)
    for step, picture in pictures.items():
        writer.add_image(tag, picture, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]


@mistake("09.3", "nothing_written")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        pass
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]


@mistake("09.3", "no_step")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]


@mistake("09.3", "counts_steps")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in enumerate(pictures.values()):
            writer.add_image(tag, picture, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]


@mistake("09.3", "tag_per_step")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(f"{tag}/{step}", picture, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(e.step, e.height, e.width) for t in reader.Tags()["images"] for e in reader.Images(t)]


@mistake("09.3", "times_255")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, 255 * picture, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]


@mistake("09.3", "transposed")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture.T, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]


@mistake("09.3", "wrong_format")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, step)
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]


@mistake("09.3", "no_reload")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0})
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]


@mistake("09.3", "only_some")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, step, dataformats="HW")
    reader = EventAccumulator(folder).Reload()
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]


@mistake("09.3", "only_some")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": len(pictures)}).Reload()
    return [(event.step, event.height, event.width) for event in reader.Images(tag)]


@mistake("09.3", "from_memory")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, step, dataformats="HW")
    return [(step, *picture.shape) for step, picture in pictures.items()]


@mistake("09.3", "width_first")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(event.step, event.width, event.height) for event in reader.Images(tag)]


@mistake("09.3", "whole_events")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, step, dataformats="HW")
    return EventAccumulator(folder, size_guidance={"images": 0}).Reload().Images(tag)


@mistake("09.3", "returns_nothing")
def log_maps(folder, tag, pictures):
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    print(reader.Images(tag))


# The pictures of the caller are rounded to what a file holds.
edited(
    "09.3",
    "argument",
    ("add_image(tag, picture,", "add_image(tag, picture.mul_(255).round_().div_(255),"),
    points=4,
)


@mistake("09.3", "one_size")
def log_maps(folder, tag, pictures):
    """All pictures get the size of the first one."""
    height, width = next(iter(pictures.values())).shape
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(e.step, height, width) for e in reader.Images(tag)]


@mistake("09.3", "one_size")
def log_maps(folder, tag, pictures):
    """The size of the picture that the loop wrote last is left over."""
    with SummaryWriter(folder) as writer:
        for step, picture in pictures.items():
            writer.add_image(tag, picture, step, dataformats="HW")
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [(e.step, *picture.shape) for e in reader.Images(tag)]
