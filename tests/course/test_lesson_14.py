"""Tests of lesson 14 beyond its printed figures: its answers and its probe on the shipped language model."""

import random
import re
from itertools import permutations

import pytest
import torch

from hookedu import catalog, record
from hookedu.authoring import source
from hookedu.models.stories import NAMES, PLACES, decode, encode, load_model
from hookedu.models.stories.grammar import NUMBER


@pytest.fixture(scope="module")
def lesson() -> dict:
    """Return the namespace with the lesson's reference answers and the functions of its probe."""
    namespace: dict = {"model": load_model(), "ids": lambda text: torch.tensor([encode(text)])}
    for cell in source.read(catalog.find("14")):
        if cell.is_code and ("setup" in cell.tags or cell.exercise or "def fit(" in cell.text):
            exec(cell.text, namespace)
    return namespace


@pytest.fixture
def prompts() -> tuple[torch.Tensor, torch.Tensor]:
    """Return ten stories in which one gives to the other, and the same with the other one giving."""
    rng, pairs = random.Random(5), []
    for _ in range(10):
        first, second = rng.sample(NAMES, 2)
        place = f"Today is sunny . {first} and {second} went to the park ."
        pairs.append([encode(f"{place} {giver} gave the key to") for giver in (first, second)])
    clean, corrupted = torch.tensor(pairs).unbind(dim=1)
    return clean, corrupted


@torch.no_grad()
def test_a_map_of_patches_is_exact_where_it_must_be(lesson, prompts):
    model = lesson["model"]
    for clean, corrupted in zip(*(p.split(1) for p in prompts), strict=True):
        names = clean[0, 4].item(), clean[0, 6].item()
        shares = lesson["patching_map"](model, clean, corrupted, names[1], names[0])
        assert (
            shares[-1, -1] == 1 and not shares[-1, :-1].any()
        )  # the last word's stream alone makes its logits
        assert torch.isfinite(shares).all() and (
            shares[0, 12] > 0.99
        )  # the giver's own word, after the first block
        assert not shares[:, :12].any()  # before it the stories are the same


@torch.no_grad()
def test_the_lens_at_the_last_depth_is_the_model(lesson, prompts):
    model, (clean, _) = lesson["model"], prompts
    with record(model, layers="blocks.3") as recording:
        logits = model(clean)
    assert torch.equal(model.unembed(model.norm(recording["blocks.3"].activation)), logits)
    torch.testing.assert_close(
        lesson["logit_lens"](model, clean)[-1], logits[:, -1]
    )  # one word: other rounding
    said = decode(model(clean)[:, -1].argmax(dim=-1).tolist()).split()
    assert [NUMBER[name] for name in said] == clean[:, 6].tolist()  # the other one


@torch.no_grad()
def test_the_probe_reads_the_weather_and_its_control_stays_at_chance(lesson):
    visits = [(weather, *pair) for weather in PLACES for pair in permutations(NAMES, 2)]
    fit, accuracy, half = lesson["fit"], lesson["accuracy"], len(visits) // 2
    for seed in range(5):
        random.Random(seed).shuffle(visits)
        (x, labels), (x_test, labels_test) = map(lesson["examples"], (visits[:half], visits[half:]))
        torch.manual_seed(seed)
        mixed, mixed_test = torch.cat([labels, labels_test])[torch.randperm(2 * half)].split(half)
        for name in x:
            told = accuracy(fit(x[name], labels)(x_test[name]), labels_test)
            control = accuracy(fit(x[name], mixed)(x_test[name]), mixed_test)
            assert abs(control - 0.5) <= 3 * (0.25 / half) ** 0.5, (seed, name, control)
            assert told > 0.99 if name != "embed" else abs(told - 0.5) < 0.1, (seed, name, told)


@pytest.mark.zoo
def test_the_program_for_gpt2_runs():
    (cell,) = (c for c in source.read(catalog.find("14")) if "GPT2LMHeadModel" in c.text)
    program = re.search(r"```python\n(.*?)```", cell.text, re.S)[1]
    namespace: dict = {}
    torch.manual_seed(0)
    exec(program, namespace)
    assert torch.equal(namespace["lens"][-1], namespace["logits"])
    assert not torch.equal(namespace["steered"], namespace["logits"])
    assert namespace["lengths"] == [9, 1, 1, 1, 1]
