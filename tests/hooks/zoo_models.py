"""Models by other authors: transformers, timm, and what of torchvision is no classifier; small, with random weights.

Every model is built from a configuration, nothing is downloaded.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import nn
from torchvision import models

VOCABULARY, CLASSES = 64, 5
CONFIGURATIONS = yaml.safe_load(Path(__file__).with_name("zoo.yml").read_text(encoding="utf-8"))
Inputs = dict[str, Any]


@dataclass(frozen=True)
class Specimen:
    """One model of the zoo and how it is run.

    Attributes
    ----------
    library, name : str
        Where it comes from, and its architecture.
    build : callable
        Makes the model and its arguments; the positional ones stand under the key "".
    run : callable
        Runs the model: `run(model, *positional, **named)`.
    train : bool
        Whether it is run in train mode with a backward pass, too.
    """

    library: str
    name: str
    build: Callable[[], tuple[nn.Module, Inputs]]
    run: Callable[..., Any] = lambda model, *args, **kwargs: model(*args, **kwargs)
    train: bool = True

    def __str__(self) -> str:
        return f"{self.library}/{self.name}"


# -- transformers ------------------------------------------------------------------------------------------------------


def _mask(*shape: int) -> torch.Tensor:
    mask = torch.ones(shape, dtype=torch.long)
    mask[1, -shape[1] // 3 :] = 0  # the second text is shorter
    return mask


MAKERS = {
    "tokens": lambda *shape: torch.randint(3, VOCABULARY, shape),
    "mask": _mask,
    "randn": torch.randn,
    "rand": torch.rand,
    "ones": torch.ones,
}


def from_configuration(kind: str, **options: Any) -> tuple[nn.Module, Inputs]:
    import transformers

    entry = CONFIGURATIONS[kind]
    configuration = transformers.CONFIG_MAPPING[kind](**entry["config"] | options)
    inputs = {
        name: MAKERS[made[0]](*made[1:]) if isinstance(made, list) else made
        for name, made in entry["inputs"].items()
    }
    return getattr(transformers, entry["model"])(configuration), inputs


def checkpointed(kind: str, reentrant: bool) -> tuple[nn.Module, Inputs]:
    model, inputs = from_configuration(kind)
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    return model, inputs


def generate(model: nn.Module, options: dict[str, Any], **inputs: Any) -> Any:
    inputs.pop("labels", None)
    return model.generate(**inputs, max_new_tokens=4, **options)


SAMPLED, BEAMS = {"do_sample": True}, {"num_beams": 2, "do_sample": False}
GENERATED = [
    *(("gpt2", SAMPLED), ("llama", SAMPLED), ("gemma2", BEAMS), ("qwen3", {})),
    *(("mamba", SAMPLED), ("jamba", SAMPLED), ("t5", BEAMS), ("bart", SAMPLED), ("whisper", SAMPLED)),
    ("mixtral", BEAMS | {"output_router_logits": False}),
    ("llama", {"cache_implementation": "static", "do_sample": False}),
]


def _of_transformers() -> list[Specimen]:
    here = functools.partial(Specimen, "transformers")
    plain = [
        here(kind, functools.partial(from_configuration, kind))
        for kind, entry in CONFIGURATIONS.items()
        if "model" in entry
    ]
    generating = [
        here(
            f"{kind}, generate({', '.join(f'{name}={value}' for name, value in options.items())})",
            functools.partial(from_configuration, kind),
            functools.partial(generate, options=options),
            train=False,
        )
        for kind, options in GENERATED
    ]
    checkpoints = [
        here(f"{kind}, checkpointed, use_reentrant={way}", functools.partial(checkpointed, kind, way))
        for kind in ("llama", "bert", "t5")
        for way in (True, False)
    ]
    return [*plain, *generating, *checkpoints]


# -- timm --------------------------------------------------------------------------------------------------------------

# name -> options; "size" is the size of the image, 64 by default
SHALLOW: dict[str, Any] = {
    "img_size": 32,
    "patch_size": 8,
    "embed_dim": 24,
    "depth": 2,
    "num_heads": 2,
    "size": 32,
}
WINDOWS: dict[str, Any] = {"img_size": 56, "embed_dim": 24, "depths": (2, 2), "num_heads": (2, 2), "size": 56}
TIMM: dict[str, dict[str, Any]] = {
    # with attention
    "beit_base_patch16_224": SHALLOW,
    "cait_xxs24_224": {"img_size": 64},
    "coat_lite_tiny": {"img_size": 64},
    "deit3_small_patch16_224": SHALLOW,
    "edgenext_xx_small": {},
    "eva02_tiny_patch14_224": {"img_size": 56, "depth": 2, "size": 56},
    "levit_128s": {"img_size": 64},
    "maxvit_pico_rw_256": {"img_size": 64, "size": 64},
    "mobilevit_xxs": {},
    "pit_ti_224": {"img_size": 64},
    "pvt_v2_b0": {},
    "swin_tiny_patch4_window7_224": WINDOWS,
    "swinv2_tiny_window8_256": WINDOWS | {"window_size": 7},
    "tiny_vit_5m_224": {},
    "twins_svt_small": {"img_size": 64, "depths": (1, 1, 1, 1)},
    "vit_tiny_patch16_224": SHALLOW,
    "volo_d1_224": {"img_size": 64},
    "xcit_nano_12_p16_224": {"img_size": 64},
    # of perceptrons
    "gmlp_s16_224": {"img_size": 32, "size": 32},
    "mixer_s16_224": {"img_size": 32, "size": 32},
    "resmlp_12_224": {"img_size": 32, "size": 32},
    # of convolutions
    "convnext_atto": {},
    "convnextv2_atto": {},
    "cs3darknet_s": {},
    "densenet121": {},
    "dla34": {},
    "dpn48b": {},
    "efficientnet_b0": {},
    "efficientvit_b0": {},
    "fastvit_t8": {},
    "ghostnet_100": {},
    "hrnet_w18_small": {},
    "inception_next_atto": {},
    "lcnet_050": {},
    "mambaout_femto": {},
    "mobilenetv4_conv_small": {},
    "nf_resnet26": {},
    "eca_nfnet_l0": {},
    "poolformer_s12": {},
    "regnety_002": {},
    "repvgg_a0": {},
    "res2net50_14w_8s": {},
    "resnest14d": {},
    "resnetv2_18": {},
    "rexnet_100": {},
    "skresnet18": {},
    "starnet_s1": {},
    "visformer_tiny": {"img_size": 64},
}


def from_timm(name: str, size: int = 64, **options: Any) -> tuple[nn.Module, Inputs]:
    import timm

    model = timm.create_model(name, num_classes=CLASSES, **options)
    return model, {"": torch.randn(2, 3, size, size)}


# -- torchvision -------------------------------------------------------------------------------------------------------

FEW = {"rpn_post_nms_top_n_train": 8, "rpn_post_nms_top_n_test": 8, "box_batch_size_per_image": 8}
DETECTION: dict[str, dict[str, int]] = {
    "fasterrcnn_mobilenet_v3_large_320_fpn": FEW,
    "fasterrcnn_resnet50_fpn_v2": FEW,
    "fcos_resnet50_fpn": {},
    "keypointrcnn_resnet50_fpn": FEW | {"num_keypoints": 3},
    "maskrcnn_resnet50_fpn": FEW,
    "retinanet_resnet50_fpn": {},
    "ssdlite320_mobilenet_v3_large": {},
}
SEGMENTATION = ["deeplabv3_mobilenet_v3_large", "fcn_resnet50", "lraspp_mobilenet_v3_large"]
VIDEO = ["r2plus1d_18", "r3d_18", "swin3d_t"]


def detector(name: str, **options: Any) -> tuple[nn.Module, Inputs]:
    if not name.startswith("ssd"):  # which has a size of its own
        options = options | {"min_size": 64, "max_size": 64}
    model = models.get_model(name, weights=None, weights_backbone=None, num_classes=CLASSES, **options)
    targets = [
        {"boxes": torch.tensor([[4.0, 4.0, 40.0, 40.0]]), "labels": torch.tensor([1])} for _ in range(2)
    ]
    for target in targets:
        target["masks"] = torch.ones(1, 64, 64, dtype=torch.uint8)
        target["keypoints"] = torch.tensor([[[8.0, 8.0, 1.0]] * 3])
    return model, {"images": list(torch.rand(2, 3, 64, 64)), "targets": targets}


def segmenter(name: str) -> tuple[nn.Module, Inputs]:
    model = models.get_model(name, weights=None, weights_backbone=None, num_classes=CLASSES)
    return model, {"": torch.randn(2, 3, 32, 32)}


def video(name: str) -> tuple[nn.Module, Inputs]:
    return models.get_model(name, weights=None), {"": torch.randn(1, 3, 4, 32, 32)}


def flow() -> tuple[nn.Module, Inputs]:
    model = models.get_model("raft_small", weights=None)
    images = torch.rand(2, 1, 3, 128, 128)
    return model, {"image1": images[0], "image2": images[1], "num_flow_updates": 2}


def encoder() -> tuple[nn.Module, Inputs]:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = nn.Sequential(
        nn.Linear(8, 16), nn.TransformerEncoder(layer, 2), nn.ReLU(inplace=True), nn.Linear(16, 3)
    )
    return model, {"": torch.randn(2, 5, 8)}


ENCODER = Specimen("torch", "nn.TransformerEncoder", encoder)
SPECIMENS = [
    ENCODER,
    *_of_transformers(),
    *(
        Specimen("timm", name, functools.partial(from_timm, name, **options))
        for name, options in TIMM.items()
    ),
    *(
        Specimen("torchvision", name, functools.partial(detector, name, **options))
        for name, options in DETECTION.items()
    ),
    *(Specimen("torchvision", name, functools.partial(segmenter, name)) for name in SEGMENTATION),
    *(Specimen("torchvision", name, functools.partial(video, name)) for name in VIDEO),
    Specimen("torchvision", "raft_small", flow),
]
