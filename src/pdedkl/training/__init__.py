from .fit import Training, fit
from .monitor import Callback, Step

__all__ = ["Callback", "Step", "Training", "fit"]
