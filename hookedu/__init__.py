"""hookedu: capture, pictures, widgets, checkers and grader of the course on PyTorch hooks.

Names load on first use, so that `import hookedu` costs a learner next to nothing.
"""

from importlib import import_module

__version__ = "0.1.0"

# public name -> the module that defines it
_HOME = {
    "HookInspector": "widgets",
    "HookTimeline": "widgets",
    "LanguageToggle": "widgets",
    "LayerPicker": "widgets",
    "Text": "language",
    "check": "checking",
    "course_map": "curriculum",
    "diagnose": "diagnosis",
    "hint": "checking",
    "list_hooks": "inspection",
    "plot_feature_maps": "plots",
    "plot_gradients": "plots",
    "plot_graph": "graph",
    "plot_sharing": "graph",
    "plot_stats": "plots",
    "plot_timeline": "plots",
    "pretrained": "trained",
    "progress": "course_progress",
    "record": "capture",
    "remove_hooks": "inspection",
    "solution": "checking",
    "timeline": "timelines",
}
__all__ = sorted(_HOME)


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'hookedu' has no attribute {name!r}")
    return getattr(import_module(f"hookedu.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
