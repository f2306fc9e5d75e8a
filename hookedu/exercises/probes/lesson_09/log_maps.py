"""What is observed of 09.3, `log_maps(folder, tag, pictures)`: its result, and what is then in the folder."""

import io
import random
import tempfile
import threading
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import matplotlib.image
import torch

# Imported with the module, not in the probe, so that a grader's warm process loads it only once.
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter

from hookedu.exercises.probing import Probe

# Its timestamp makes readers read it before any file that is written now.
_EARLIER = "events.out.tfevents.0000000001.earlier"


# A tag, the pictures of an earlier run, and the new ones; both by step, with values in fifths.
Case = tuple[str, dict[int, torch.Tensor], dict[int, torch.Tensor]]


@runtime_checkable
class _Stoppable(Protocol):
    """The thread of a SummaryWriter, which `threading` knows as a plain Thread."""

    def stop(self) -> None: ...


def _case(rng: random.Random) -> Case:
    height, width = rng.sample((3, 4, 5, 6), 2)
    steps = sorted(rng.sample(range(2, 40), 7))

    def picture() -> torch.Tensor:
        fifths = [rng.randint(0, 5) for _ in range(height * width - 2)]
        return torch.tensor([0, 5, *fifths], dtype=torch.float32).reshape(height, width) / 5

    pictures = [(10 * step, picture()) for step in steps]
    return rng.choice(("conv1", "block2/conv", "features.3")), dict(pictures[:2]), dict(pictures[2:])


def observe(log_maps: Any, case: Case) -> dict[str, Any]:
    """Log the pictures into a folder that holds an earlier run, and read the folder."""
    tag, earlier, pictures = case
    threads = set(threading.enumerate())
    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(folder) as writer:
            for step, picture in earlier.items():
                writer.add_image(tag, picture, step, dataformats="HW")
        next(Path(folder).iterdir()).rename(Path(folder) / _EARLIER)
        try:
            result = log_maps(folder, tag, {step: picture.clone() for step, picture in pictures.items()})
        except KeyError as error:  # raised by a reader that does not know the tag
            if "Reservoir" not in str(error):
                raise
            result = error
        finally:
            open_writers = _end_writers(threads)
        reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
        images = {name: reader.Images(name) for name in sorted(reader.Tags()["images"])}
    return {
        "result": result,
        "open": open_writers,
        "steps_in_file": {name: [event.step for event in events] for name, events in images.items()},
        "pixels": {event.step: _pixels(event.encoded_image_string) for event in images.get(tag, ())},
    }


def _end_writers(before: set[threading.Thread]) -> int:
    """Stop the writers that were never closed, which would write to a folder that is gone; return their number."""
    new = (t for t in set(threading.enumerate()) - before if type(t).__module__.startswith("tensorboard."))
    stops = [thread.stop for thread in new if isinstance(thread, _Stoppable)]
    for stop in stops:
        stop()
    return len(stops)


def _pixels(png: bytes) -> torch.Tensor:
    """Return the pixels of a picture, (H, W), from 0 to 1."""
    values = torch.tensor(matplotlib.image.imread(io.BytesIO(png), format="png"))
    return values[..., 0] if values.dim() == 3 else values


PROBE = Probe("09.3", "log_maps", _case, observe)
