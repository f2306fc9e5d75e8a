"""pretrained(): trained weights from torch's cache, else seeded random ones and a reason. No network."""

import os
from urllib.parse import urlparse

import pytest
import torch
from torchvision.models import GoogLeNet_Weights, SqueezeNet1_1_Weights, googlenet, squeezenet1_1
from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

from hookedu import pretrained


@pytest.fixture(autouse=True)
def offline(tmp_path, monkeypatch):
    """Use an empty cache, and a proxy that refuses every connection at once."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cached(tmp_path):
    """Return the path where torch looks for the weights of SqueezeNet (5 MB)."""
    path = (
        tmp_path / "hub" / "checkpoints" / os.path.basename(urlparse(SqueezeNet1_1_Weights.DEFAULT.url).path)
    )
    path.parent.mkdir(parents=True)
    return path


def weights_of(model):
    return torch.cat([tensor.flatten() for tensor in model.state_dict().values()])


def test_what_lies_in_the_cache_is_taken(cached, capsys):
    torch.manual_seed(7)
    theirs = squeezenet1_1()
    torch.save(theirs.state_dict(), cached)
    state = torch.get_rng_state()
    model = pretrained(squeezenet1_1)
    assert torch.equal(weights_of(model), weights_of(theirs)) and not model.training
    assert torch.equal(torch.get_rng_state(), state)
    said = capsys.readouterr().out
    assert f"训练好的权重（`{cached.name}`）" in said and "has trained weights" in said


def test_without_them_the_weights_are_seeded_and_it_says_how_to_get_them(capsys):
    models = [pretrained(squeezenet1_1) for _ in range(2)]
    assert torch.equal(*map(weights_of, models)) and not models[0].training
    assert not torch.equal(weights_of(models[0]), weights_of(pretrained(squeezenet1_1, seed=1)))
    said = capsys.readouterr().out
    assert "`pretrained(squeezenet1_1, download=True)`" in said and "5 MB" in said and "随机" in said


def test_where_the_network_does_not_allow_it(capsys):
    model = pretrained(squeezenet1_1, download=True)
    assert torch.equal(weights_of(model), weights_of(pretrained(squeezenet1_1)))
    said = capsys.readouterr().out
    assert "could not be downloaded" in said and "没能下载" in said


@pytest.mark.parametrize("spoil", ["nothing in it", "no zip", "another model's", "runs code"])
def test_a_spoilt_file_is_named(cached, capsys, tmp_path, spoil):
    class Mine:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harm"),)

    if spoil == "nothing in it":
        cached.write_bytes(b"")
    elif spoil == "no zip":
        cached.write_bytes(b"<html>Log in to the hotel's network</html>")
    else:
        torch.save({"x": torch.ones(1)} if spoil == "another model's" else Mine(), cached)
    model = pretrained(squeezenet1_1)
    assert torch.isfinite(weights_of(model)).all()
    assert not (tmp_path / "harm").exists()
    said = capsys.readouterr().out
    assert str(cached) in said and "Delete it" in said and "删掉它" in said


def test_a_model_without_trained_weights_is_refused():
    with pytest.raises(ValueError, match="weights"):
        pretrained(torch.nn.Identity)


def test_a_detector_fetches_no_backbone(capsys):
    model = pretrained(fasterrcnn_mobilenet_v3_large_320_fpn)
    assert not model.training and "download=True" in capsys.readouterr().out


def test_trained_weights_are_used_as_torchvision_uses_them(tmp_path):
    """GoogLeNet's were trained on inputs scaled in another way: torchvision switches that on with them."""
    name = os.path.basename(urlparse(GoogLeNet_Weights.DEFAULT.url).path)
    path = tmp_path / "hub" / "checkpoints" / name
    path.parent.mkdir(parents=True)
    torch.save(googlenet(init_weights=False).state_dict(), path)
    assert pretrained(googlenet).transform_input and not googlenet(init_weights=False).transform_input
