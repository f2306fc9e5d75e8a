"""The public names of hookedu with their types, for editors and type checkers; at run time each loads on first use."""

from hookedu.hooks.capture import record as record
from hookedu.hooks.diagnosis import diagnose as diagnose
from hookedu.hooks.inspection import list_hooks as list_hooks
from hookedu.hooks.inspection import remove_hooks as remove_hooks
from hookedu.hooks.timeline import timeline as timeline
from hookedu.language import Text as Text
from hookedu.learner.checking import check as check
from hookedu.learner.checking import hint as hint
from hookedu.learner.checking import solution as solution
from hookedu.learner.course_map import course_map as course_map
from hookedu.learner.progress import progress as progress
from hookedu.models.pretrained import pretrained as pretrained
from hookedu.plots.graph import plot_graph as plot_graph
from hookedu.plots.graph import plot_sharing as plot_sharing
from hookedu.plots.maps import plot_feature_maps as plot_feature_maps
from hookedu.plots.maps import plot_gradients as plot_gradients
from hookedu.plots.summaries import plot_stats as plot_stats
from hookedu.plots.summaries import plot_timeline as plot_timeline
from hookedu.widgets.grad_cam_playground import GradCamPlayground as GradCamPlayground
from hookedu.widgets.gradient_flow import GradientFlow as GradientFlow
from hookedu.widgets.guessing import guess as guess
from hookedu.widgets.hook_inspector import HookInspector as HookInspector
from hookedu.widgets.hook_timeline import HookTimeline as HookTimeline
from hookedu.widgets.language_toggle import LanguageToggle as LanguageToggle
from hookedu.widgets.layer_picker import LayerPicker as LayerPicker
from hookedu.widgets.training_panel import TrainingPanel as TrainingPanel

__version__: str
__all__ = [
    "GradCamPlayground",
    "GradientFlow",
    "HookInspector",
    "HookTimeline",
    "LanguageToggle",
    "LayerPicker",
    "Text",
    "TrainingPanel",
    "check",
    "course_map",
    "diagnose",
    "guess",
    "hint",
    "list_hooks",
    "plot_feature_maps",
    "plot_gradients",
    "plot_graph",
    "plot_sharing",
    "plot_stats",
    "plot_timeline",
    "pretrained",
    "progress",
    "record",
    "remove_hooks",
    "solution",
    "timeline",
]
