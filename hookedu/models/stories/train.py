"""Train the language model that is shipped with the course and write its model card.

Run it with `python -m hookedu.models.stories.train`: some minutes on two cores. Every story is told once and used once.
"""

import random
from datetime import date
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.progress import Progress
from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import OneCycleLR

from hookedu.language import Text
from hookedu.models.stories.grammar import NAMES, NUMBER, PLACES, Story, tell
from hookedu.models.stories.transformer import WEIGHTS, StoryModel

SEED = 0  # of the initial weights and of the training stories
STEPS = 3000
BATCH = 64
RATE = 0.002  # maximum learning rate of the one-cycle schedule, https://arxiv.org/abs/1708.07120
HELD_OUT = 1  # seed of the stories on which the model is measured
STORIES = 2000  # their number
FOCUS = 8  # weight in the loss of a word that the context fixes; most others cannot be told at all

CARD = Text(
    zh="""# 模型卡：`stories.pt`

- **模型**：`hookedu.models.stories.StoryModel`，{parameters:,} 个参数：{depth} 块，宽 {width}，每块 {heads} 个头。输入词的编号，输出下一个词的 logit。
- **数据**：`hookedu.models.stories.tell` 讲的故事，seed {seed}，共 {stories:,} 个，每个只看一次。
- **训练**：AdamW，one-cycle 学习率，批大小 {batch}，{steps:,} 步，`torch.manual_seed({seed})`；{date}，torch {torch}。
- **准确率**：没见过的 {held_out:,} 个故事里，要看前文才能知道的词，答对 {accuracy:.2%}；前文换成另一个故事的，答对 {swapped:.2%}（瞎猜一个名字，对的机会是 {name:.2%}，地方是 {place:.2%}）。
- **局限**：只懂 {words} 个词、这一种故事。它只供教学。
- **重做**：`python -m hookedu.models.stories.train`。换一台机器，末位数字会有出入。""",
    en="""# Model card: `stories.pt`

- **Model**: `hookedu.models.stories.StoryModel`, {parameters:,} parameters: {depth} blocks of width {width}, {heads} heads each. It takes
  numbers of words and gives the logits of the next word.
- **Data**: stories told by `hookedu.models.stories.tell`, seed {seed}, {stories:,} of them, each seen once.
- **Training**: AdamW, one-cycle learning rate, batches of {batch}, {steps:,} steps, `torch.manual_seed({seed})`; {date}, torch {torch}.
- **Accuracy**: in {held_out:,} unseen stories, {accuracy:.2%} of the words that can be told only from earlier sentences;
  with the earlier sentences of another story, {swapped:.2%} (a guessed name is right in {name:.2%}, a place in {place:.2%}).
- **Limits**: it knows {words} words and this one kind of story. It is for teaching only.
- **Again**: `python -m hookedu.models.stories.train`. On another machine the last digits differ.""",
)


def batch(stories: list[Story]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the numbers of all words but the last, those of the words that follow them, and the weights of these.

    Each has the shape (stories, words). Shorter stories are filled up with full stops of weight 0.
    """
    longest = max(len(story.words) for story in stories)
    ids = torch.full((len(stories), longest), NUMBER["."])
    weights = torch.zeros(len(stories), longest)
    for row, story in enumerate(stories):
        ids[row, : len(story.words)] = torch.tensor([NUMBER[word] for word in story.words])
        weights[row, : len(story.words)] = 1
        weights[row, list(story.fixed)] = FOCUS
    return ids[:, :-1], ids[:, 1:], weights[:, 1:]


def train(steps: int = STEPS) -> StoryModel:
    """Train a new model and return it in evaluation mode; show a progress bar if there is a terminal."""
    torch.manual_seed(SEED)
    rng, model = random.Random(SEED), StoryModel()
    optimizer = AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    schedule = OneCycleLR(optimizer, max_lr=RATE, total_steps=steps)
    with Progress() as bar:
        task = bar.add_task("", total=steps)
        for _ in range(steps):
            ids, labels, weights = batch([tell(rng) for _ in range(BATCH)])
            losses = nn.functional.cross_entropy(model(ids).transpose(1, 2), labels, reduction="none")
            loss = (losses * weights).sum() / weights.sum()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            bar.update(task, advance=1, description=f"loss {loss.item():.3f}")
    return model.eval()


@torch.no_grad()
def accuracy(model: StoryModel, stories: list[Story], *, swapped: bool = False) -> float:
    """Return the share of the words fixed by earlier sentences that the model predicts.

    Parameters
    ----------
    model : StoryModel
        The model to measure.
    stories : list of Story
        The stories.
    swapped : bool
        Put the earlier sentences of the story before in place of its own, so that what fixes the word is missing.
    """
    right = total = 0
    for before, story in zip([stories[-1], *stories[:-1]], stories, strict=True):
        for place in story.fixed:
            context = before.words[: _begin(before, before.fixed[-1])] if swapped else ()
            words = *context, *story.words[_begin(story, place) if swapped else 0 : place]
            logits = model(torch.tensor([[NUMBER[word] for word in words]]))
            right += logits[0, -1].argmax().item() == NUMBER[story.words[place]]
            total += 1
    return right / total


def _begin(story: Story, place: int) -> int:
    """Return the place where the sentence of a word begins; a question and its answer are one."""
    return max(i + 1 for i in range(place) if story.words[i] == ".")


def card(model: StoryModel, steps: int, measured: float, swapped: float) -> str:
    """Return the model card, Chinese first, with the two results of `accuracy`."""
    said = CARD.format(
        parameters=sum(p.numel() for p in model.parameters()),
        depth=len(model.blocks),
        width=model.embed.embedding_dim,
        heads=model.heads,
        seed=SEED,
        stories=steps * BATCH,
        steps=steps,
        batch=BATCH,
        date=date.today().isoformat(),
        torch=torch.__version__.split("+")[0],
        held_out=STORIES,
        accuracy=measured,
        swapped=swapped,
        name=1 / len(NAMES),
        place=1 / sum(map(len, PLACES.values())),
        words=len(NUMBER),
    )
    return f"{said.zh}\n\n{said.en}\n"


def main(
    steps: Annotated[int, typer.Option(help="训练多少步 · steps to train")] = STEPS,
    out: Annotated[Path, typer.Option(help="写到哪个文件夹 · the folder to write to")] = WEIGHTS.parent,
) -> None:
    """训练、测量，写下权重和模型卡 · Train, measure, write the weights and their card."""
    model = train(steps)
    torch.save(model.state_dict(), out / WEIGHTS.name)
    rng = random.Random(HELD_OUT)
    stories = [tell(rng) for _ in range(STORIES)]
    measured, swapped = accuracy(model, stories), accuracy(model, stories, swapped=True)
    (out / "MODEL_CARD.md").write_text(card(model, steps, measured, swapped), encoding="utf-8")
    print(
        Text(
            zh="要看前文的词：答对 {measured:.1%}；前文换成别的故事：{swapped:.1%}",
            en="Words that need the context: {measured:.1%} right; with the context of another story: {swapped:.1%}",
        ).format(measured=measured, swapped=swapped)
    )


if __name__ == "__main__":
    typer.run(main)
