"""Widgets, made of ipywidgets only: no JavaScript of ours to install or to break."""

from hookedu.widgets.language_toggle import LanguageToggle

__all__ = ["LanguageToggle"]
