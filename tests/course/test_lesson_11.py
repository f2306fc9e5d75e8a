"""Tests of lesson 11's answers on the trained network: the maps find the shapes and agree with grad-cam."""

import pytest
import torch
from torch.utils.data import DataLoader

import tests.answers
from hookedu import catalog
from hookedu.authoring import source
from hookedu.exercises import find
from hookedu.exercises.judging import judge
from hookedu.exercises.probing import observe
from hookedu.models.shapes import Sample, Shapes, SmallCNN, load_model


@pytest.fixture(scope="module")
def answers() -> dict:
    """Return the namespace with the lesson's reference answers."""
    namespace: dict = {}
    for cell in source.read(catalog.find("11")):
        if cell.is_code and ("setup" in cell.tags or cell.exercise):
            exec(cell.text, namespace)
    return namespace


@pytest.fixture(scope="module")
def unseen() -> Sample:
    """Return 500 pictures in one batch, from a seed that nothing else uses."""
    return next(iter(DataLoader(Shapes(500, seed=101), batch_size=500)))


@pytest.fixture(scope="module")
def cams(answers, unseen) -> torch.Tensor:
    model = load_model()
    parts = zip(
        unseen.image.split(100), unseen.label.split(100), strict=True
    )  # the graph of all 500 pictures takes 1 GB
    return torch.cat([answers["grad_cam"](model, model.block4, *part) for part in parts])


def test_the_map_hits_the_box_and_a_guess_at_the_middle_does_not(answers, unseen, cams):
    middle = torch.zeros(len(cams), 64, 64)
    middle[:, 32, 32] = 1
    found, guessed = (answers["hit_rate"](maps, unseen.box) for maps in (cams, middle))
    assert found >= 0.93 and guessed <= 0.5 and found >= guessed + 0.3


def test_random_weights_give_other_maps_that_miss(answers, unseen, cams):
    torch.manual_seed(1)
    model, some = SmallCNN().eval(), slice(150)
    random = answers["grad_cam"](model, model.block4, unseen.image[some], unseen.label[some])
    assert answers["hit_rate"](random, unseen.box[some]) < 0.4
    pairs = torch.stack([cams[some].flatten(1), random.flatten(1)], dim=1)
    alike = torch.stack([pair.corrcoef()[0, 1] for pair in pairs]).nan_to_num()  # nan for a map of zeros
    assert alike.mean() < 0.3


def test_another_class_lights_up_another_place(answers, unseen):
    """Test class discrimination as in the Grad-CAM paper: two shapes in one picture, a map for each."""
    lefts = (unseen.box[:, 2] <= 31).nonzero()[:60, 0]
    rights = (unseen.box[:, 0] >= 33).nonzero()[:60, 0]
    differ = unseen.label[lefts] != unseen.label[rights]
    lefts, rights = lefts[differ], rights[differ]
    both = torch.cat([unseen.image[lefts, :, :, :32], unseen.image[rights, :, :, 32:]], dim=3)
    model = load_model()
    for asked, other in ((lefts, rights), (rights, lefts)):
        cam = answers["grad_cam"](model, model.block4, both, unseen.label[asked])
        assert answers["hit_rate"](cam, unseen.box[asked]) >= 0.85
        assert answers["hit_rate"](cam, unseen.box[other]) <= 0.1


# Output of `GradCAM(load_model(), [model.block4])` of the package grad-cam 1.5.7 for the first two pictures,
# at rows and columns 0, 16, 32, 48. New weights need new figures. The package scales each map to the range
# from 0 to 1.
GRAD_CAM_PACKAGE = torch.tensor(
    [
        [
            [0.0109, 0.0, 0.0331, 0.0316],
            [0.1961, 0.4106, 0.1863, 0.0745],
            [0.437, 0.8883, 0.4891, 0.0551],
            [0.1389, 0.3917, 0.2314, 0.0045],
        ],
        [
            [0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0306, 0.2347, 0.1827],
            [0.0, 0.2591, 0.8254, 0.518],
            [0.0, 0.1521, 0.61, 0.339],
        ],
    ]
)


def test_grad_cam_agrees_with_the_package_of_that_name(cams):
    low, high = cams[:2].amin(dim=(1, 2), keepdim=True), cams[:2].amax(dim=(1, 2), keepdim=True)
    scaled = (cams[:2] - low) / (high - low)
    assert torch.allclose(scaled[:, ::16, ::16], GRAD_CAM_PACKAGE, atol=2e-4)


@pytest.mark.parametrize("exercise", ["11.1", "11.2"])
def test_a_message_shows_the_picture_that_is_wrong(exercise):
    """If only the first picture has a gradient, the message must show the second."""
    one = next(a for a in tests.answers.answers() if (a.exercise, a.mistake) == (exercise, "one_picture"))
    found = find(exercise)
    seeds = found.seeds(0)
    failed = judge(found, observe(found.probe, one.fresh(), seeds), seeds).failed
    assert "[1]" in failed.expected and failed.got != failed.expected
