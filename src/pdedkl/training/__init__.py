from .fit import Training, fit
from .monitor import Step

__all__ = ["Step", "Training", "fit"]
