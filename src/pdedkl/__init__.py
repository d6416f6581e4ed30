"""PDE-constrained deep kernel learning: linear PDEs in many dimensions, from little data, with error bars."""

from .precision import enable_float64

enable_float64()  # before any submodule creates an array

from .domain import Coordinates, Domain  # noqa: E402
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
    Shift,
    identity,
)
from .saving import load  # noqa: E402
from .search import Evaluation, Search, search  # noqa: E402
from .training import Step, Training, fit  # noqa: E402

__version__ = "0.1.0"

__all__ = [
    "MLP",
    "Affine",
    "Bottleneck",
    "Coefficient",
    "Component",
    "ConstantMean",
    "Coordinates",
    "D",
    "Diffusion",
    "Directional",
    "Divergence",
    "Domain",
    "Embedding",
    "Evaluation",
    "FunctionMean",
    "IdentityEmbedding",
    "Kernel",
    "Laplacian",
    "Learned",
    "Matern52",
    "Matern72",
    "Matern92",
    "Mean",
    "Model",
    "Observation",
    "Operator",
    "Parameter",
    "Posterior",
    "Prediction",
    "Profile",
    "RationalQuadratic",
    "Residual",
    "Search",
    "Shift",
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
    "search",
]
