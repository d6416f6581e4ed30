from .fit import FitWarning, Training, fit
from .monitor import Callback, Step

__all__ = ["Callback", "FitWarning", "Step", "Training", "fit"]
