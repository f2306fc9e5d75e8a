"""Widgets: Python holds the state and the tensors; modules in js/ draw."""

from hookedu.widgets.grad_cam_playground import GradCamPlayground
from hookedu.widgets.gradient_flow import GradientFlow
from hookedu.widgets.guessing import guess
from hookedu.widgets.hook_inspector import HookInspector
from hookedu.widgets.hook_timeline import HookTimeline
from hookedu.widgets.language_toggle import LanguageToggle
from hookedu.widgets.layer_picker import LayerPicker
from hookedu.widgets.training_panel import TrainingPanel

__all__ = [
    "GradCamPlayground",
    "GradientFlow",
    "HookInspector",
    "HookTimeline",
    "LanguageToggle",
    "LayerPicker",
    "TrainingPanel",
    "guess",
]
