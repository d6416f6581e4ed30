"""The names of the package; importing this imports JAX."""

from .domain import Coordinates, Domain
from .embeddings import MLP, Affine, Bottleneck, Embedding, IdentityEmbedding, Residual
from .inference import Posterior, Prediction, condition, negative_log_evidence
from .kernels import (
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
from .means import ConstantMean, FunctionMean, Mean, ZeroMean
from .model import Model
from .observations import Learned, Observation
from .operators import (
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
from .saving import load
from .searching import Evaluation, Search, search
from .training import Step, Training, fit

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
