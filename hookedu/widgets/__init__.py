"""Widgets, made of ipywidgets only: no JavaScript of ours to install or to break."""

from hookedu.widgets.hook_inspector import HookInspector
from hookedu.widgets.hook_timeline import HookTimeline
from hookedu.widgets.language_toggle import LanguageToggle
from hookedu.widgets.layer_picker import LayerPicker

__all__ = ["HookInspector", "HookTimeline", "LanguageToggle", "LayerPicker"]
