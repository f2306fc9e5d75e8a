"""Exercise 09.3, `log_maps(folder, tag, pictures)`: write pictures to an event file and read them back."""

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

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_09.shared import RETURNS_NOTHING
from hookedu.exercises.observation import show
from hookedu.language import Text

# Its timestamp makes readers read it before any file that is written now.
_EARLIER = "events.out.tfevents.0000000001.earlier"


@runtime_checkable
class _Stoppable(Protocol):
    """The thread of a SummaryWriter, which `threading` knows as a plain Thread."""

    def stop(self) -> None: ...


def _case(rng: random.Random) -> tuple[str, dict[int, torch.Tensor], dict[int, torch.Tensor]]:
    """Return (tag, pictures of an earlier run, new pictures), pictures by step, with values in fifths."""
    height, width = rng.sample((3, 4, 5, 6), 2)
    steps = sorted(rng.sample(range(2, 40), 7))

    def picture() -> torch.Tensor:
        fifths = [rng.randint(0, 5) for _ in range(height * width - 2)]
        return torch.tensor([0, 5, *fifths], dtype=torch.float32).reshape(height, width) / 5

    pictures = {10 * step: picture() for step in steps}
    tag = rng.choice(("conv1", "block2/conv", "features.3"))
    return tag, dict(list(pictures.items())[:2]), dict(list(pictures.items())[2:])


def _probe(log_maps: Any, rng: random.Random) -> dict[str, Any]:
    tag, earlier, pictures = _case(rng)
    threads = set(threading.enumerate())
    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(folder) as writer:
            for step, picture in earlier.items():
                writer.add_image(tag, picture, step, dataformats="HW")
        next(Path(folder).iterdir()).rename(Path(folder) / _EARLIER)
        unread = False
        try:
            found = log_maps(folder, tag, {step: picture.clone() for step, picture in pictures.items()})
        except KeyError as error:  # raised by a reader that does not know the tag
            if "Reservoir" not in str(error):
                raise
            found, unread = None, True
        finally:
            open_writers = _end_writers(threads)
        return {"found": found, "unread": unread, "open": open_writers, "file": _read(folder)}


def _end_writers(before: set[threading.Thread]) -> int:
    """Stop the writers that were never closed, and return their number.

    The thread of each would later write to a folder that no longer exists.
    """
    left = [
        thread
        for thread in set(threading.enumerate()) - before
        if type(thread).__module__.startswith("tensorboard.") and isinstance(thread, _Stoppable)
    ]
    for thread in left:
        thread.stop()
    return len(left)


def _read(folder: str) -> list[list[Any]]:
    """Return [[tag, step, pixels], ...] of all pictures in a folder; pixels are (H, W), from 0 to 255."""
    reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()
    return [
        [tag, event.step, _pixels(event.encoded_image_string)]
        for tag in sorted(reader.Tags()["images"])
        for event in reader.Images(tag)
    ]


def _pixels(png: bytes) -> torch.Tensor:
    values = torch.tensor(matplotlib.image.imread(io.BytesIO(png), format="png"))
    grey = values[..., 0] if values.dim() == 3 else values
    return (255 * grey).round().to(torch.uint8)


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    tag, earlier, pictures = _case(rng)
    every = earlier | pictures
    height, width = next(iter(pictures.values())).shape
    expected = [[step, height, width] for step in every]
    written = [(step, pixels) for name, step, pixels in saw["file"] if name == tag]
    steps, found = [step for step, _ in written], saw["found"]
    open_writers = Text(zh="{n} 个没有关上", en="{n} left open")
    given = f"{tag!r}: steps {list(earlier)} from an earlier run; pictures of {height} by {width} at {list(pictures)}"
    wrong = next((s for s, pixels in written if s in every and not _alike(pixels, every[s])), None)
    return [
        Criterion(
            "closed",
            saw["open"] == 0,
            points=1,
            essential=True,
            given=f"log_maps(folder, {tag!r}, pictures)",
            expected=open_writers.format(n=0),
            got=open_writers.format(n=saw["open"]),
            mistake="not_closed",
        ),
        Criterion(
            "steps",
            steps == list(every),
            points=1,
            essential=True,
            given=given,
            expected=f"in the file: {tag!r} at {list(every)}",
            got=f"in the file: {sorted({row[0] for row in saw['file']})} at {[row[1] for row in saw['file']]}",
            mistake=_wrong_steps(saw["file"], tag, earlier, pictures),
        ),
        Criterion(
            "pixels",
            wrong is None,
            points=1,
            essential=True,
            given=f"pictures[{wrong}] = {show(every[wrong])}" if wrong is not None else "",
            expected=f"in the file: {show((255 * every[wrong]).to(torch.uint8))}"
            if wrong is not None
            else "",
            got=f"in the file: {show(dict(written)[wrong])}" if wrong is not None else "",
            mistake=_wrong_pixels(dict(written), pictures),
        ),
        Criterion(
            "read",
            found == expected,
            points=2,
            essential=True,
            given=given,
            expected=show(expected),
            got=show(found) if not saw["unread"] else "KeyError",
            mistake=_misread(found, expected, len(earlier), saw["unread"]),
        ),
    ]


def _alike(pixels: Any, picture: torch.Tensor) -> bool:
    return pixels.shape == picture.shape and bool(((pixels.float() - 255 * picture).abs() <= 1).all())


def _wrong_steps(file: list, tag: str, earlier: dict, pictures: dict) -> str | None:
    tags, steps = {row[0] for row in file} - {tag}, [row[1] for row in file if row[0] == tag][len(earlier) :]
    if len(tags) >= len(pictures):
        return "tag_per_step"
    if not steps:
        return "nothing_written"
    if steps == [0] * len(pictures):
        return "no_step"
    return "counts_steps" if steps in ([*range(len(pictures))], [*range(1, len(pictures) + 1)]) else None


def _wrong_pixels(written: dict[int, torch.Tensor], pictures: dict[int, torch.Tensor]) -> str | None:
    ours = {step: pixels for step, pixels in written.items() if step in pictures}
    if ours and all(
        ((p == 255) == (pictures[s] > 0)).all() for s, p in ours.items() if p.shape == pictures[s].shape
    ):
        return "transposed" if any(p.shape != pictures[s].shape for s, p in ours.items()) else "times_255"
    return None


def _misread(found: Any, expected: list, earlier: int, unread: bool) -> str | None:
    if unread:
        return "no_reload"
    if found is None:
        return "returns_nothing"
    if not isinstance(found, list):
        return None
    if found == expected[earlier:]:
        return "from_memory"
    if found == [[step, width, height] for step, height, width in expected]:
        return "width_first"
    if 0 < len(found) < len(expected) and all(row in expected for row in found):
        return "only_some"
    return "whole_events" if found and not isinstance(found[0], list) else None


LOG_MAPS = Exercise(
    id="09.3",
    title=Text(zh="写进去，读回来", en="Write and read back"),
    answer="log_maps",
    points=5,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh='两步：`with SummaryWriter(folder) as writer:` 里逐张 `writer.add_image(tag, picture, step, dataformats="HW")`；出了 `with` 再读。',
            en='Two steps: inside `with SummaryWriter(folder) as writer:` call `writer.add_image(tag, picture, step, dataformats="HW")` for '
            "each; read after the `with`.",
        ),
        Text(
            zh='读：`reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()`。不写 `size_guidance`，每个标签只留 4 张。',
            en='Reading: `reader = EventAccumulator(folder, size_guidance={"images": 0}).Reload()`. Without `size_guidance` only 4 pictures a tag are kept.',
        ),
        Text(
            zh="最后：`return [(event.step, event.height, event.width) for event in reader.Images(tag)]`。上一次训练的图也在里面。",
            en="At the end: `return [(event.step, event.height, event.width) for event in reader.Images(tag)]`. Those of the earlier run are in there too.",
        ),
    ),
    mistakes=(
        Mistake(
            "not_closed",
            Text(
                zh="`SummaryWriter` 没有关上：写入在另一个线程里进行，没关上就读，能读到几张全凭运气。用 `with`，或者 `writer.close()`。",
                en="Your `SummaryWriter` is still open: another thread does the writing, and if you read before closing it is luck what is there. "
                "Use `with`, or `writer.close()`.",
            ),
            fails="closed",
        ),
        Mistake(
            "nothing_written",
            Text(
                zh='文件里没有新的图：给每一步调用一次 `writer.add_image(tag, picture, step, dataformats="HW")`，写进 `folder`。',
                en='No new picture is in the folder: for each step call `writer.add_image(tag, picture, step, dataformats="HW")` on a writer for `folder`.',
            ),
            fails="steps",
        ),
        Mistake(
            "no_step",
            Text(
                zh="新的图都记在第 0 步：`add_image` 的第三个参数是步数，不写就是 0。",
                en="All new pictures are at step 0: the third argument of `add_image` is the step, 0 if you leave it out.",
            ),
            fails="steps",
        ),
        Mistake(
            "counts_steps",
            Text(
                zh="步数成了 0、1、2……：`pictures` 的键才是步数，用 `pictures.items()`。",
                en="Your steps are 0, 1, 2 and so on: the keys of `pictures` are the steps, use `pictures.items()`.",
            ),
            fails="steps",
        ),
        Mistake(
            "tag_per_step",
            Text(
                zh="每一步用了一个新标签，TensorBoard 里就拖不动时间滑块了。标签不变，步数另外给。",
                en="Each step has a tag of its own, and TensorBoard has no slider to move through time. One tag; the step is an argument.",
            ),
            fails="steps",
        ),
        Mistake(
            "times_255",
            Text(
                zh="不是 0 的地方全白了：浮点图 `add_image` 自己会乘 255，你又乘了一遍。给它 0 到 1 的值。",
                en="Everything above 0 is white: `add_image` multiplies floats by 255 itself, and you had done it already. Hand it values from 0 to 1.",
            ),
            fails="pixels",
        ),
        Mistake(
            "transposed",
            Text(
                zh='图躺倒了：二维张量是先高后宽，`dataformats="HW"`，不要转置。',
                en='The pictures lie on their side: a 2-D tensor is height by width, `dataformats="HW"`; don\'t transpose.',
            ),
            fails="pixels",
        ),
        Mistake(
            "wrong_format",
            Text(
                zh='`add_image` 默认要三维的 `CHW`；二维的图要写 `dataformats="HW"`。',
                en='By default `add_image` wants three dimensions, `CHW`; for a 2-D picture write `dataformats="HW"`.',
            ),
            raises=r"size of input tensor and input format are different",
        ),
        Mistake(
            "no_reload",
            Text(
                zh="图写好了，读的人却什么也没读：`EventAccumulator(...)` 要 `Reload()` 之后才有内容。",
                en="The pictures are written, but the reader read nothing: an `EventAccumulator(...)` is empty until `Reload()`.",
            ),
            fails="read",
        ),
        Mistake(
            "only_some",
            Text(
                zh='只读回了一部分：读取器默认每个标签随机留 4 张，自己给的数太小也会丢。写 `size_guidance={"images": 0}`，就全部留下。',
                en="Only some of the pictures came back: by default the reader keeps a random 4 of each tag, and a number of yours may be too small. "
                '`size_guidance={"images": 0}` keeps all.',
            ),
            fails="read",
        ),
        Mistake(
            "from_memory",
            Text(
                zh="少了上一次训练的图：你返回的是自己刚写的，而不是文件里有的。用 `EventAccumulator` 从 `folder` 读。",
                en="Those of the earlier run are missing: you returned what you wrote, not what is in the folder. Read it with `EventAccumulator`.",
            ),
            fails="read",
        ),
        Mistake(
            "width_first",
            Text(
                zh="宽和高反了：每一项是 `(step, height, width)`。",
                en="Width and height are swapped: each item is `(step, height, width)`.",
            ),
            fails="read",
        ),
        Mistake(
            "whole_events",
            Text(
                zh="每一项应当是元组 `(event.step, event.height, event.width)`，不是整个事件。",
                en="Each item should be a tuple, `(event.step, event.height, event.width)`, not the whole event.",
            ),
            fails="read",
        ),
        Mistake("returns_nothing", RETURNS_NOTHING.says, fails="read"),
    ),
    insight=Text(
        zh="一个文件夹就是一次训练的记录，接着训练就再添一个文件。写了什么，读回来才算数。",
        en="A folder is the record of a run, and going on adds another file. What was written is what can be read back.",
    ),
)
