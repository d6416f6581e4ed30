from .fit import fit
from .monitor import Callback, Step
from .records import FitWarning, Round, Training
from .solving import solve

__all__ = ["Callback", "FitWarning", "Round", "Step", "Training", "fit", "solve"]
