"""Train the network that is shipped with the course and write its model card.

Run it with `python -m hookedu.models.shapes.train`. Every image is rendered once and used once: as new images
are unlimited, the network cannot memorise them, and no augmentation is needed.
"""

from datetime import date
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.progress import Progress
from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import ConcatDataset, DataLoader, Dataset

from hookedu.language import Text
from hookedu.models.shapes.data import Shapes
from hookedu.models.shapes.drawing import AREA, CLASSES
from hookedu.models.shapes.small_cnn import WEIGHTS, SmallCNN

SEED = 0  # of the initial weights and of the training images
IMAGES = 40_000
BATCH = 64
RATE = 0.01  # maximum learning rate of the one-cycle schedule, https://arxiv.org/abs/1708.07120
HELD_OUT = range(1, 6)  # seeds of the test images
EACH = 1200  # test images per seed: a multiple of the number of classes

CARD = Text(
    zh="""# 模型卡：`small_cnn.pt`

- **模型**：`hookedu.models.shapes.SmallCNN`，{parameters:,} 个参数。输入 3×64×64、取值 0 到 1 的图像，输出每一类的 logit。
- **数据**：`hookedu.models.shapes.Shapes` 画的图，只用 seed {seed}，共 {images:,} 张，每张只看一次。
- **训练**：AdamW，one-cycle 学习率，批大小 {batch}，`torch.manual_seed({seed})`；{date}，torch {torch}。
- **准确率**：{accuracy:.2%}，在没见过的 seed {first} 到 {last} 上，每个 seed {each} 张。分类来看：{by_class}。
- **局限**：只认识这一种画面：有且只有一个形状，完整可见，面积 {low:.0f} 到 {high:.0f} 像素，旋转不超过 20 度。
  照片、被遮住的形状、没有形状的图，它都会自信地答错。它只供教学。
- **重做**：`python -m hookedu.models.shapes.train`。换一台机器，末位数字会有出入。""",
    en="""# Model card: `small_cnn.pt`

- **Model**: `hookedu.models.shapes.SmallCNN`, {parameters:,} parameters. It takes 3×64×64 images from 0 to 1 and gives one
  logit for each class.
- **Data**: pictures drawn by `hookedu.models.shapes.Shapes`, seed {seed} only, {images:,} of them, each seen once.
- **Training**: AdamW, one-cycle learning rate, batches of {batch}, `torch.manual_seed({seed})`; {date}, torch {torch}.
- **Accuracy**: {accuracy:.2%} on the unseen seeds {first} to {last}, {each} pictures of each. By class: {by_class}.
- **Limits**: it knows this one kind of picture: exactly one shape, wholly visible, {low:.0f} to {high:.0f} pixels in area, turned
  by 20 degrees at most. A photograph, a covered shape or a picture without a shape gets a confident wrong answer.
  It is for teaching only.
- **Again**: `python -m hookedu.models.shapes.train`. On another machine the last digits differ.""",
)


def train(images: int = IMAGES) -> SmallCNN:
    """Train a new network and return it in evaluation mode; show a progress bar if there is a terminal."""
    torch.manual_seed(SEED)
    model = SmallCNN()
    # One process renders while this one trains.
    batches = DataLoader(Shapes(images, SEED), batch_size=BATCH, num_workers=1)
    optimizer = AdamW(model.parameters(), lr=RATE, weight_decay=0.05)
    schedule = OneCycleLR(optimizer, max_lr=RATE, total_steps=len(batches))
    with Progress() as bar:
        task = bar.add_task("", total=len(batches))
        for batch in batches:
            loss = nn.functional.cross_entropy(model(batch.image), batch.label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            bar.update(task, advance=1, description=f"loss {loss.item():.3f}")
    return model.eval()


@torch.no_grad()
def accuracy_by_class(model: SmallCNN, pictures: Dataset) -> torch.Tensor:
    """Return the accuracy of the model on each class: (classes,) float32."""
    right, seen = torch.zeros(2, len(CLASSES))
    for batch in DataLoader(pictures, batch_size=250, num_workers=1):
        hit = model(batch.image).argmax(dim=1) == batch.label
        right += batch.label[hit].bincount(minlength=len(CLASSES))
        seen += batch.label.bincount(minlength=len(CLASSES))
    return right / seen


def card(model: SmallCNN, accuracy: torch.Tensor, images: int) -> str:
    """Return the model card, Chinese first; `accuracy` is the result of `accuracy_by_class`."""
    said = CARD.format(
        parameters=sum(p.numel() for p in model.parameters()),
        seed=SEED,
        images=images,
        batch=BATCH,
        date=date.today().isoformat(),
        torch=torch.__version__.split("+")[0],
        accuracy=accuracy.mean().item(),  # the classes have equally many images
        by_class=", ".join(
            f"{name} {share:.2%}" for name, share in zip(CLASSES, accuracy.tolist(), strict=True)
        ),
        first=HELD_OUT[0],
        last=HELD_OUT[-1],
        each=EACH,
        low=AREA[0],
        high=AREA[1],
    )
    return f"{said.zh}\n\n{said.en}\n"


def main(
    images: Annotated[int, typer.Option(help="训练用多少张图 · pictures to train on")] = IMAGES,
    out: Annotated[Path, typer.Option(help="写到哪个文件夹 · the folder to write to")] = WEIGHTS.parent,
) -> None:
    """训练、测量，写下权重和模型卡 · Train, measure, write the weights and their card."""
    model = train(images)
    accuracy = accuracy_by_class(model, ConcatDataset([Shapes(EACH, seed) for seed in HELD_OUT]))
    torch.save(model.state_dict(), out / WEIGHTS.name)
    (out / "MODEL_CARD.md").write_text(card(model, accuracy, images), encoding="utf-8")
    print(
        Text(
            zh="没见过的图上的准确率：{accuracy:.1%}", en="Accuracy on unseen pictures: {accuracy:.1%}"
        ).format(accuracy=accuracy.mean().item())
    )


if __name__ == "__main__":
    typer.run(main)
