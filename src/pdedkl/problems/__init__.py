"""Problems (an equation, a domain and conditions), observations sampled from them, and the problems of the paper."""

from .catalogue import BUILT_IN, Entry, built_in
from .conditions import Condition, Dirichlet, Initial, Neumann, Periodic, Robin, Sensors
from .files import ProblemFileError, from_file, from_text, template
from .problem import Points, Problem
from .sampling import SAMPLERS
from .verification import Check, Verification

__all__ = [
    "BUILT_IN",
    "SAMPLERS",
    "Check",
    "Condition",
    "Dirichlet",
    "Entry",
    "Initial",
    "Neumann",
    "Periodic",
    "Points",
    "Problem",
    "ProblemFileError",
    "Robin",
    "Sensors",
    "Verification",
    "built_in",
    "from_file",
    "from_text",
    "template",
]
