"""The public names of the package. Importing this module imports JAX.

The examples in the docstrings begin with these lines:

```python
import jax
import jax.numpy as jnp
import numpy as np

import pdedkl as pk

domain = pk.Domain(x=[(0, 1)] * 2, t=(0, 1))
x, t = domain.coordinates("x", "t")
heat = pk.D(t) - 0.1 * pk.Laplacian(x)

points = np.random.default_rng(0).uniform(size=(20, 3))
values = np.sin(points[:, 0]) * np.exp(-points[:, 2])
data = pk.Observation(pk.identity, points, values, noise=0.01)
posterior = pk.condition(pk.ard(domain), data)

problem = pk.problems.built_in("heat", dim=2)
```
"""

from . import problems
from .checking.design import Design
from .checking.parameters import Estimate, Parameters
from .domain import Ball, Coordinates, Domain
from .embeddings import MLP, Affine, Bottleneck, Embedding, IdentityEmbedding, Invariants, Residual
from .equations import Number, cos, exp, fields, log, sin, sqrt, tanh, unknown
from .inference import Posterior, Prediction, condition, negative_log_evidence
from .inference.quantities import Quantity
from .inference.shares import Interactions, Share
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
from .means import ConstantMean, FunctionMean, Mean, NetworkMean, ZeroMean
from .model import Model
from .observations import Learned, Observation
from .operators import (
    Coefficient,
    D,
    Diffusion,
    Directional,
    Divergence,
    Integral,
    Laplacian,
    LogNormal,
    Normal,
    Operator,
    Parameter,
    Shift,
    Uniform,
    identity,
)
from .problems import (
    Dirichlet,
    Initial,
    Neumann,
    Periodic,
    Points,
    Problem,
    ProblemWarning,
    Robin,
    Sensors,
)
from .saving import load
from .searching import Evaluation, Search, search
from .training import FitWarning, Round, Step, Training, fit, solve
from .verdicts import Verdict

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
    "Design",
    "Diffusion",
    "Directional",
    "Dirichlet",
    "Divergence",
    "Domain",
    "Embedding",
    "Estimate",
    "Evaluation",
    "FitWarning",
    "FunctionMean",
    "IdentityEmbedding",
    "Initial",
    "Integral",
    "Interactions",
    "Invariants",
    "Kernel",
    "Laplacian",
    "Learned",
    "LogNormal",
    "Matern52",
    "Matern72",
    "Matern92",
    "Mean",
    "Model",
    "NetworkMean",
    "Neumann",
    "Normal",
    "Number",
    "Observation",
    "Operator",
    "Parameter",
    "Parameters",
    "Periodic",
    "Points",
    "Posterior",
    "Prediction",
    "Problem",
    "ProblemWarning",
    "Profile",
    "Quantity",
    "RationalQuadratic",
    "Residual",
    "Robin",
    "Round",
    "Search",
    "Sensors",
    "Share",
    "Shift",
    "SquaredExponential",
    "Step",
    "Training",
    "Uniform",
    "Verdict",
    "ZeroMean",
    "additive",
    "ard",
    "condition",
    "cos",
    "deep",
    "exp",
    "fields",
    "fit",
    "identity",
    "load",
    "log",
    "negative_log_evidence",
    "problems",
    "search",
    "sin",
    "solve",
    "sqrt",
    "tanh",
    "unknown",
]
