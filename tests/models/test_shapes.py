"""The data set has the documented properties, and the shipped network the accuracy of its model card."""

import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from hookedu.models.shapes import CLASSES, Sample, Shapes, SmallCNN, draw_shapes, load_model
from hookedu.models.shapes.small_cnn import WEIGHTS
from hookedu.models.shapes.train import accuracy_by_class, card, train

UNSEEN = 101  # a seed that was used neither for training nor for the model card


@pytest.fixture(scope="module")
def unseen() -> Sample:
    """Return 360 images in one batch."""
    return next(iter(DataLoader(Shapes(360, UNSEEN), batch_size=360)))


def test_an_item_depends_on_seed_and_index_alone():
    alone = Shapes(12, seed=3)[11]
    workers = list(DataLoader(Shapes(500, seed=3), batch_size=None, sampler=[7, 11], num_workers=1))[1]
    assert all(
        torch.equal(torch.as_tensor(a), torch.as_tensor(b)) for a, b in zip(alone, workers, strict=True)
    )
    np.random.seed(0), torch.manual_seed(0)  # the global generators are neither used nor changed
    state = torch.get_rng_state()
    assert torch.equal(Shapes(12, seed=3)[11].image, alone.image)
    assert torch.equal(torch.get_rng_state(), state)
    # Two of seven items are of the same class, and they differ as well.
    assert len({Shapes(1, seed)[0].image.numpy().tobytes() for seed in range(7)}) == 7
    assert len({sample.image.numpy().tobytes() for sample in Shapes(7, seed=3)}) == 7


def test_a_sample_is_what_its_docstring_says(unseen):
    assert unseen.image.shape == (360, 3, 64, 64) and unseen.image.dtype == torch.float32
    assert 0 <= unseen.image.min() < 0.1 and 0.9 < unseen.image.max() <= 1
    assert unseen.box.shape == (360, 4) and unseen.box.dtype == torch.int64
    assert unseen.mask.shape == unseen.distractors.shape == (360, 64, 64)
    assert unseen.mask.dtype == unseen.distractors.dtype == torch.bool


@pytest.mark.parametrize("index", [-1, 6])
def test_items_beyond_the_end_are_refused(index):
    with pytest.raises(IndexError, match=f"item {index} of 6"):
        Shapes(6, seed=1)[index]
    assert len(list(Shapes(6, seed=1))) == 6  # a plain loop ends with the IndexError


def test_negative_arguments_are_refused():
    with pytest.raises(ValueError, match="seed=-1"):
        Shapes(1, seed=-1)


def test_every_six_items_hold_each_class_once(unseen):
    blocks = unseen.label.view(-1, len(CLASSES))
    assert torch.equal(blocks.sort(dim=1).values, torch.arange(6).expand_as(blocks))
    assert len({tuple(block.tolist()) for block in blocks}) > 40  # and the order is random


def test_boxes_are_tight_and_shapes_whole(unseen):
    for mask, (x0, y0, x1, y1) in zip(unseen.mask, unseen.box.tolist(), strict=True):
        assert mask.sum() == mask[y0:y1, x0:x1].sum() > 140
        for side in (mask[y0], mask[y1 - 1], mask[:, x0], mask[:, x1 - 1]):
            assert side.any()
        assert min(x0, y0) >= 2 and max(x1, y1) <= 62


def test_distractors_keep_clear_of_the_box_and_are_never_filled_or_closed(unseen):
    near = torch.zeros_like(unseen.mask)
    for i, (x0, y0, x1, y1) in enumerate(unseen.box.tolist()):
        near[i, y0 - 2 : y1 + 2, x0:x1] = near[i, y0:y1, x0 - 2 : x1 + 2] = True
    assert not (near & unseen.distractors).any()
    assert (unseen.distractors.sum(dim=(1, 2)) > 20).all()

    def filled(masks):  # a square of 5×5 pixels without a hole exists
        return (nn.functional.avg_pool2d(masks[:, None].float(), 5, stride=1) == 1).flatten(1).any(dim=1)

    assert filled(unseen.mask).all() and not filled(unseen.distractors).any()
    # Flood fill from the border, pixel by pixel: it reaches everything that no closed figure encloses.
    free = ~unseen.distractors
    reached = free.clone()
    reached[:, 1:-1, 1:-1] = False
    for _ in range(400):
        wider = nn.functional.max_pool2d(reached[:, None].float(), 3, stride=1, padding=1)[:, 0].bool() & free
        if torch.equal(wider, reached):
            break
        reached = wider
    assert torch.equal(reached, free)


def test_only_the_form_tells_the_class(unseen):
    """Colour, size and position predict the class about as badly as chance (1 in 6), its form much better."""
    area = unseen.mask.sum(dim=(1, 2)).float()
    colour = (unseen.image * unseen.mask[:, None]).sum(dim=(2, 3)) / area[:, None]
    corners = unseen.box.float()
    place = (corners[:, :2] + corners[:, 2:]) / 2
    sides = corners[:, 2:] - corners[:, :2]

    def named(features) -> float:
        """Return the accuracy on the second half of a nearest-mean classifier fitted to the first half."""
        features = (features - features.mean(dim=0)) / features.std(dim=0)
        half, label = len(features) // 2, unseen.label
        means = torch.stack([features[:half][label[:half] == c].mean(dim=0) for c in range(len(CLASSES))])
        return (torch.cdist(features[half:], means).argmin(dim=1) == label[half:]).float().mean().item()

    assert named(torch.cat([colour, place, area[:, None]], dim=1)) < 0.27
    assert named((area / sides.prod(dim=1))[:, None]) > 0.5


def test_the_network_is_one_that_hooks_like():
    model = SmallCNN()
    assert [name for name, _ in model.named_children()] == [
        *("block1", "block2", "block3", "block4", "avgpool", "head")
    ]
    assert not any(getattr(module, "inplace", False) for module in model.modules())
    assert model(torch.zeros(2, 3, 64, 64)).shape == (2, 6)
    assert model.block1[0] is model.block1.conv


def test_the_shipped_weights_are_small_and_as_good_as_their_card_says(unseen):
    assert WEIGHTS.stat().st_size < 300_000
    model = load_model()
    assert not model.training
    right = (model(unseen.image).argmax(dim=1) == unseen.label).float().mean().item()
    said = (WEIGHTS.parent / "MODEL_CARD.md").read_text(encoding="utf-8")
    zh, en = (
        float(re.search(rf"\*\*{word}\*\*\D*([\d.]+)%", said)[1]) / 100 for word in ("准确率", "Accuracy")
    )
    assert zh == en >= 0.95
    assert right >= 0.95 and abs(right - en) < 0.03


def test_training_repeats_itself_and_writes_its_card():
    model, again = train(images=128), train(images=128)
    for name, value in model.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
    torch.manual_seed(0)
    assert not torch.equal(SmallCNN().head.weight, model.head.weight)
    accuracy = accuracy_by_class(load_model(), Shapes(30, UNSEEN))
    assert accuracy.shape == (6,) and accuracy.min() >= 0.5
    written = card(model, torch.tensor([1, 1, 1, 1, 1, 0.94]), images=128)
    assert written.count("99.00%") == 2 and written.count("heart 94.00%") == 2


def test_shapes_load_on_their_own_and_only_when_asked_for():
    program = (
        "import sys, hookedu; assert 'hookedu.models.shapes' not in sys.modules\n"
        "import hookedu.models.shapes; heavy = {'matplotlib', 'rich', 'typer', 'IPython', 'torchvision'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_shapes_are_drawn_where_one_wants_them():
    ground = draw_shapes([])
    assert torch.equal(ground, draw_shapes([])) and ground.shape == (3, 64, 64) and 0.03 < ground.std() < 0.3
    one = draw_shapes([("cross", 20, 30)])
    changed = (one != ground).any(0).nonzero()
    assert (changed.amin(0) + changed.amax(0)).tolist() == [60, 40]  # rows, columns: its middle, twice
    assert torch.equal(draw_shapes([("cross", 20, 30), ("star", 20, 30)], one)[:, :9], one[:, :9])
    other = torch.rand(3, 64, 64, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(draw_shapes([], other), other, atol=1 / 255)


@pytest.mark.parametrize(
    ("shapes", "ground", "says"),
    [([("hexagon", 3, 3)], None, "'hexagon', only circle"), ([], torch.rand(3, 8, 8), "3×64×64")],
)
def test_what_cannot_be_drawn_is_refused(shapes, ground, says):
    with pytest.raises(ValueError, match=says):
        draw_shapes(shapes, ground)


def test_the_network_knows_every_drawn_shape_in_every_place():
    places = [(name, x, y) for name in CLASSES for x in range(12, 56, 8) for y in range(12, 56, 8)]
    with torch.no_grad():
        answers = load_model()(torch.stack([draw_shapes([place]) for place in places])).argmax(1)
    assert [CLASSES[answer] for answer in answers] == [name for name, *_ in places]


def test_a_heart_and_a_triangle_are_called_a_circle():
    """Lesson 11 lets learners find that out, and gives the reason: their logits nearly add up."""
    heart, triangle = ("heart", 18, 32), ("triangle", 46, 32)
    pictures = [draw_shapes(shapes) for shapes in ([heart, triangle], [heart], [triangle], [])]
    with torch.no_grad():
        both, one, other, none = load_model()(torch.stack(pictures))
    assert CLASSES[both.argmax()] == "circle" and (both - (one + other - none)).abs().max() < 2
    for a, b in ((one, "triangle"), (other, "heart")):
        assert a[CLASSES.index(b)] < -12 and a[CLASSES.index("circle")] > 2
