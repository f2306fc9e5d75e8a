"""hookedu: capture, pictures, widgets, checkers and grader of the course on PyTorch hooks.

Public names load on first use, so that `import hookedu` adds next to nothing to `import torch`. `__init__.pyi` tells
editors and type checkers the same names with their types; a test holds the two equal.
"""

import sys
from importlib import import_module

__version__ = "0.1.0"

# public name -> the module that defines it
_HOME = {
    "GradCamPlayground": "widgets",
    "GradientFlow": "widgets",
    "HookInspector": "widgets",
    "HookTimeline": "widgets",
    "LanguageToggle": "widgets",
    "LayerPicker": "widgets",
    "Text": "language",
    "TrainingPanel": "widgets",
    "check": "learner.checking",
    "course_map": "learner.course_map",
    "diagnose": "hooks.diagnosis",
    "guess": "widgets",
    "hint": "learner.checking",
    "list_hooks": "hooks.inspection",
    "plot_feature_maps": "plots.maps",
    "plot_gradients": "plots.maps",
    "plot_graph": "plots.graph",
    "plot_sharing": "plots.graph",
    "plot_stats": "plots.summaries",
    "plot_timeline": "plots.summaries",
    "pretrained": "models.pretrained",
    "progress": "learner.progress",
    "record": "hooks.capture",
    "remove_hooks": "hooks.inspection",
    "solution": "learner.checking",
    "timeline": "hooks.timeline",
}
__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll] - __init__.pyi lists them


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'hookedu' has no attribute {name!r}")
    return getattr(import_module(f"hookedu.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]


if "ipykernel" in sys.modules:  # in a notebook
    import_module("hookedu.plots.resolution").double()
