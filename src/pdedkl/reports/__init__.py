"""Pictures of a solved problem, and one self-contained page about it."""

from .explorer import Explorer, explorer
from .figures import calibration, predicted_against_true, slice_maps
from .graph import which_inputs_act_together
from .html import Picture, pictures, write_report
from .inside import latent_coordinates, sensitivity, training_history, which_inputs_matter
from .results import Results, evaluate
from .style import save

__all__ = [
    "Explorer",
    "Picture",
    "Results",
    "calibration",
    "evaluate",
    "explorer",
    "latent_coordinates",
    "pictures",
    "predicted_against_true",
    "save",
    "sensitivity",
    "slice_maps",
    "training_history",
    "which_inputs_act_together",
    "which_inputs_matter",
    "write_report",
]
