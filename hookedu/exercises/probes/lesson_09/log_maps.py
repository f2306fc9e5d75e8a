"""What is observed of 09.3, `log_maps(folder, tag, pictures)`: its result, and what is then in the folder."""

import contextlib
import io
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import matplotlib.image
import torch

# Imported with the module, not in the probe, so that a grader's warm process loads it only once.
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from torch.utils.tensorboard import SummaryWriter

from hookedu.exercises.probing import Draw, Probe

# Its timestamp makes readers read it before any file that is written now.
_EARLIER = "events.out.tfevents.0000000001.earlier"


class Case(NamedTuple):
    """A tag, the pictures of an earlier run, and the new ones; both by step."""

    tag: str
    earlier: dict[int, torch.Tensor]
    pictures: dict[int, torch.Tensor]


@runtime_checkable
class _Stoppable(Protocol):
    """The thread of a SummaryWriter, which `threading` knows as a plain Thread."""

    def stop(self) -> None: ...


def _case(rng: Draw) -> Case:
    """Return a few pictures that are not square, then more than a hundred, one of them at the step of an earlier one.

    Values are a little less than seventeenths, so that whoever rounds them to bytes in place changes them; none is 0, which
    a picture on its own scale would have. In turn 1 one value is exactly 1, which times 256 is no byte. The last picture has
    one row more than the others.
    """
    height, width = rng.sample((3, 4, 5, 6), 2)
    earlier, new = ((2, 5), (1, 104))[rng.turn]
    steps = sorted(rng.sample(range(2, 40 if rng.turn == 0 else 400), earlier + new))
    again = steps[earlier + 2] if rng.turn else steps[0]

    def picture(height: int = height) -> torch.Tensor:
        values = [rng.randint(3, 14) for _ in range(height * width - 2)]
        ends = [3, (14, 17.02)[rng.turn]]
        return torch.tensor([*ends, *values], dtype=torch.float32).reshape(height, width) / 17.02

    old, pictures = (
        {10 * n: picture() for n in some} for some in ([again, *steps[1:earlier]], steps[earlier:])
    )
    pictures[10 * steps[-1]] = picture(height + 1)
    return Case(("block2/conv", "conv1")[rng.turn], old, pictures)


def observe(log_maps: Any, case: Case) -> dict[str, Any]:
    """Log the pictures into a folder that holds an earlier run, and read the folder."""
    tag, earlier, pictures = case
    threads, open_when_read = set(threading.enumerate()), [0]
    read: set[str] = set()

    def note(path: str) -> None:
        open_when_read.append(len(_writers(threads)))
        read.add(Path(path).name)

    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(folder) as writer:
            old = [(tag, step, picture) for step, picture in earlier.items()]
            other = f"{tag}/another", 1, next(iter(earlier.values()))
            # In one case the first tag in the folder is another one, in the other case the last.
            for name, step, picture in [other, *old] if len(old) > 1 else [*old, other]:
                writer.add_image(name, picture, step, dataformats="HW")
        next(Path(folder).iterdir()).rename(Path(folder) / _EARLIER)
        try:
            with _on_reading(note):
                result = log_maps(folder, tag, pictures)
        except KeyError as error:  # raised by a reader that does not know the tag
            if "Reservoir" not in str(error):
                raise
            result = error
        finally:
            open_writers = _writers(threads)
            for writer in open_writers:  # they would write to a folder that is gone
                writer.stop()
        unread = {path.name for path in Path(folder).glob("*tfevents*")} - read
        reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
        images = {name: reader.Images(name) for name in sorted(reader.Tags()["images"]) if name != other[0]}
    return {
        "result": result,
        "open": len(open_writers),
        "open_when_read": open_when_read[-1],
        "unread": len(unread),
        "steps_in_file": {name: [event.step for event in events] for name, events in images.items()},
        "pixels": {event.step: _pixels(event.encoded_image_string) for event in images.get(tag, ())},
    }


@contextlib.contextmanager
def _on_reading(note: Callable[[str], None]) -> Iterator[None]:
    """Call `note` with its path whenever an event file is read."""
    load = RawEventFileLoader.Load

    def noted(self: RawEventFileLoader) -> Any:
        note(self._file_path)
        return load(self)

    RawEventFileLoader.Load = noted
    try:
        yield
    finally:
        RawEventFileLoader.Load = load


def _writers(before: set[threading.Thread]) -> list[_Stoppable]:
    """Return the threads of the writers that were opened and never closed."""
    new = (t for t in set(threading.enumerate()) - before if type(t).__module__.startswith("tensorboard."))
    return [thread for thread in new if isinstance(thread, _Stoppable)]


def _pixels(png: bytes) -> torch.Tensor:
    """Return the pixels of a picture, (H, W), from 0 to 1."""
    values = torch.tensor(matplotlib.image.imread(io.BytesIO(png), format="png"))
    return values[..., 0] if values.dim() == 3 else values


PROBE = Probe("09.3", "log_maps", _case, observe, cases=2)
