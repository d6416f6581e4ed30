from .fit import FitWarning, Round, Training, fit
from .monitor import Callback, Step
from .solving import solve

__all__ = ["Callback", "FitWarning", "Round", "Step", "Training", "fit", "solve"]
