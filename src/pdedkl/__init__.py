"""PDE-constrained deep kernel learning: linear PDEs in many dimensions, from little data, with error bars."""

from .precision import enable_float64

enable_float64()  # before any submodule creates an array

from . import problems  # noqa: E402
from .domain import Ball, Coordinates, Domain  # noqa: E402
from .embeddings import MLP, Affine, Bottleneck, Embedding, IdentityEmbedding, Residual  # noqa: E402
from .inference import Posterior, Prediction, condition, negative_log_evidence  # noqa: E402
from .kernels import (  # noqa: E402
    Component,
    Kernel,
    Matern52,
    Matern72,
    Matern92,
    Profile,
    RationalQuadratic,
    SquaredExponential,
    additive,
    ard,
    deep,
)
from .means import ConstantMean, FunctionMean, Mean, ZeroMean  # noqa: E402
from .model import Model  # noqa: E402
from .observations import Learned, Observation  # noqa: E402
from .operators import (  # noqa: E402
    Coefficient,
    D,
    Diffusion,
    Directional,
    Divergence,
    Laplacian,
    Operator,
    Parameter,
    identity,
)
from .problems import (  # noqa: E402
    Dirichlet,
    Initial,
    Neumann,
    Periodic,
    Points,
    Problem,
    Robin,
    Sensors,
)
from .saving import load  # noqa: E402
from .search import Evaluation, Search, search  # noqa: E402
from .training import Step, Training, fit  # noqa: E402

__version__ = "0.1.0"

__all__ = [
    "MLP",
    "Affine",
    "Ball",
    "Bottleneck",
    "Coefficient",
    "Component",
    "ConstantMean",
    "Coordinates",
    "D",
    "Diffusion",
    "Directional",
    "Dirichlet",
    "Divergence",
    "Domain",
    "Embedding",
    "Evaluation",
    "FunctionMean",
    "IdentityEmbedding",
    "Initial",
    "Kernel",
    "Laplacian",
    "Learned",
    "Matern52",
    "Matern72",
    "Matern92",
    "Mean",
    "Model",
    "Neumann",
    "Observation",
    "Operator",
    "Parameter",
    "Periodic",
    "Points",
    "Posterior",
    "Prediction",
    "Problem",
    "Profile",
    "RationalQuadratic",
    "Residual",
    "Robin",
    "Search",
    "Sensors",
    "SquaredExponential",
    "Step",
    "Training",
    "ZeroMean",
    "additive",
    "ard",
    "condition",
    "deep",
    "fit",
    "identity",
    "load",
    "negative_log_evidence",
    "problems",
    "search",
]
