"""Problems (an equation, a domain and conditions), observations sampled from them, and the problems of the paper."""

from ..sampling import SAMPLERS
from .catalogue import BUILT_IN, Entry, built_in
from .conditions import Condition, Dirichlet, Initial, Neumann, Periodic, Robin, Sensors
from .files import ProblemFileError, from_file, from_text, template
from .lint import Finding, ProblemWarning
from .problem import Points, Problem
from .verification import Check, Verification

__all__ = [
    "BUILT_IN",
    "SAMPLERS",
    "Check",
    "Condition",
    "Dirichlet",
    "Entry",
    "Finding",
    "Initial",
    "Neumann",
    "Periodic",
    "Points",
    "Problem",
    "ProblemFileError",
    "ProblemWarning",
    "Robin",
    "Sensors",
    "Verification",
    "built_in",
    "from_file",
    "from_text",
    "template",
]
