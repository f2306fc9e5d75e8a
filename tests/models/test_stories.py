"""The stories fix the words that they say they fix, and the shipped language model has learned to look back."""

import random
import re
import subprocess
import sys

import pytest
import torch

from hookedu.models.stories import (
    PLACES,
    WORDS,
    Cache,
    Story,
    StoryModel,
    decode,
    encode,
    load_model,
    tell,
)
from hookedu.models.stories.train import FOCUS, accuracy, batch, card, train
from hookedu.models.stories.transformer import WEIGHTS

UNSEEN = 101  # a seed that was used neither for training nor for the model card


@pytest.fixture(scope="module")
def stories() -> list[Story]:
    rng = random.Random(UNSEEN)
    return [tell(rng) for _ in range(500)]


@pytest.fixture(scope="module")
def model() -> StoryModel:
    return load_model()


def read(words: tuple[str, ...]) -> dict[int, str]:
    """Return what earlier sentences fix, by place, as a reader would find it who only has the words."""
    text, found, people, place, owner = " ".join(words), {}, set(), "", ""
    for match in re.finditer(r"[^.?]+(\? [^.]+)?\.", text):
        sentence, at = match[0].split(), len(text[: match.start()].split())
        match sentence:
            case [first, "and", second, "went", "to", "the", place, "."]:
                people = {first, second}
            case [first, "is", "in", "the", place, "."]:
                people = {first}
            case [second, "came", "to", "the", _, "."]:
                people |= {second}
                found[at + 4] = place
            case [giver, "gave", "the", thing, "to", _, "."]:
                (owner,) = people - {giver}
                found[at + 5] = owner
            case [owner, "took", "the", _, "."]:
                found[at + 3] = thing
            case ["Where", "is", name, "?", "In", "the", _, "."]:
                assert name in people
                found[at + 6] = place
            case ["Who", "has", "the", asked, "?", _, "."]:
                assert asked == thing
                found[at + 5] = owner
            case ["Today", "is", weather, "."]:
                assert weather in PLACES
            case _:
                raise AssertionError(sentence)
    return found


def test_earlier_sentences_fix_the_words_that_a_story_lists(stories):
    assert len({str(story) for story in stories}) == len(stories)
    for story in stories:
        assert read(story.words) == {place: story.words[place] for place in story.fixed}
        assert decode(encode(str(story))) == str(story)
        assert story.fixed and len(story.words) <= 44
    assert sum(len(story.fixed) for story in stories) > 1.5 * len(stories)


def test_people_go_where_the_weather_lets_them(stories):
    for story in stories:
        other = PLACES["rainy" if "sunny" in story.words else "sunny"]
        assert not set(other) & set(story.words)


def test_a_word_of_another_language_is_named():
    with pytest.raises(KeyError, match="Berlin"):
        encode("Anna went to Berlin")


def test_the_model_reads_the_past_alone(model):
    ids = torch.tensor([encode("Today is sunny . Anna and Ben went to the park .")])
    logits, shorter = model(ids), model(ids[:, :-3])
    assert logits.shape == (1, ids.shape[1], len(WORDS))
    torch.testing.assert_close(logits[:, :-3], shorter)


def test_its_modules_give_what_their_file_says(model):
    seen, ids = {}, torch.tensor([encode("Today is sunny . Anna and Ben went to the park .")])

    def keep(name):
        return lambda module, args, output: seen.update({name: (args, output)})

    handles = [module.register_forward_hook(keep(name)) for name, module in model.named_modules() if name]
    logits = model(ids)
    for handle in handles:
        handle.remove()
    for number, block in enumerate(model.blocks):
        name = f"blocks.{number}"
        (before, _), after = seen[name]
        added, pattern = seen[f"{name}.attention"][1]
        assert torch.equal(seen[f"{name}.middle"][1], before + added)
        assert torch.equal(after, before + added + seen[f"{name}.mlp"][1])
        assert torch.equal(seen[f"{name}.attention.pattern"][1], pattern)
        assert pattern.shape == (1, 4, 12, 12)
        torch.testing.assert_close(pattern.sum(dim=-1), torch.ones(1, 4, 12))
        assert not pattern.triu(1).any()
        assert torch.equal(block.attention.out(seen[f"{name}.attention.out"][0][0]), added)
        later = seen[f"blocks.{number + 1}"][0][0] if number + 1 < len(model.blocks) else seen["norm"][0][0]
        assert torch.equal(after, later)
    assert torch.equal(model.unembed(model.norm(after)), logits)


def test_generation_with_a_cache_calls_the_model_once_per_word_and_changes_nothing(model, stories):
    longest = max(len(story.words) for story in stories)
    ids = torch.tensor([encode(str(s)) for s in stories if len(s.words) == longest])[:4, :20]
    lengths = []
    with model.register_forward_pre_hook(lambda module, args: lengths.append(args[0].shape[1])):
        cache = Cache()
        fast = model.generate(ids, 12, cache=cache)
    assert lengths == [20] + [1] * 11 and len(cache) == 31
    slow = ids
    with torch.no_grad():
        for _ in range(12):
            slow = torch.cat([slow, model(slow)[:, -1:].argmax(dim=-1)], dim=1)
    assert torch.equal(fast, slow)
    with pytest.raises(ValueError, match="60 \\+ 5 words; this model reads at most 64"):
        model.generate(torch.zeros(1, 60, dtype=torch.int64), 5)


def test_the_shipped_weights_are_small_and_look_back(model, stories):
    assert WEIGHTS.stat().st_size < 2_000_000
    assert not model.training
    said = (WEIGHTS.parent / "MODEL_CARD.md").read_text(encoding="utf-8")
    zh, en = (
        float(re.search(rf"\*\*{word}\*\*.*?([\d.]+)%", said, re.S)[1]) / 100
        for word in ("准确率", "Accuracy")
    )
    assert zh == en >= 0.95
    right = accuracy(model, stories)
    assert right >= 0.95 and abs(right - en) < 0.03
    assert accuracy(model, stories, swapped=True) < 0.15


def test_training_repeats_itself_and_writes_its_card():
    model, again = train(steps=3), train(steps=3)
    for name, value in model.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
    written = card(model, 3, 0.9731, 0.0712)
    assert written.count("97.31%") == 2 and written.count("7.12%") == 2


def test_a_batch_weighs_what_the_context_fixes_and_nothing_after_the_end():
    short, long = Story(("Anna", "is"), ()), Story(("Ben", "took", "the", "cup", "."), (3,))
    ids, labels, weights = batch([short, long])
    assert ids.tolist() == [encode("Anna is . ."), encode("Ben took the cup")]
    assert labels.tolist() == [encode("is . . ."), encode("took the cup .")]
    assert weights.tolist() == [[1, 0, 0, 0], [1, 1, FOCUS, 1]]


def test_stories_load_on_their_own_and_only_when_asked_for():
    program = (
        "import sys, hookedu; assert 'hookedu.models.stories' not in sys.modules\n"
        "import hookedu.models.stories; heavy = {'matplotlib', 'rich', 'typer', 'IPython', 'torchvision'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
