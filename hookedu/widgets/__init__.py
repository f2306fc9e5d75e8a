"""Widgets, made of ipywidgets only: no JavaScript of ours to install or to break."""

from hookedu.widgets.language_toggle import LanguageToggle
from hookedu.widgets.layer_picker import LayerPicker

__all__ = ["LanguageToggle", "LayerPicker"]
