"""The classes that a model file may hold, each with a short tag that never changes.

A file contains tags only. Only classes listed here are built, so a file cannot make a program import or run anything.
"""

from __future__ import annotations

import dataclasses

from ..domain import Coordinates
from ..embeddings import (
    MLP,
    Activation,
    Affine,
    Bottleneck,
    IdentityEmbedding,
    Invariants,
    LatentJet,
    Linear,
    Normalisation,
    Residual,
)
from ..equations.numbers import Number, Powered, Slope, Worked
from ..inference import Posterior
from ..inference.calibration import Calibration, Probes
from ..inference.engines import Stacked
from ..inference.estimates import Estimates
from ..inference.iterative import Iterative, Preconditioner
from ..inference.solver import Factorised
from ..kernels import BaseKernel, Component, Kernel, Matern, RationalQuadratic, SquaredExponential
from ..kernels.mixing import Mixing
from ..means import ConstantMean, FunctionMean, NetworkMean, ZeroMean
from ..model import Model
from ..observations import Learned, Observation
from ..operators.base import Composed, Identity, Scaled, Sum
from ..operators.coefficients import Coefficient, Constant, Entries, Parameter, Product
from ..operators.derivatives import Diffusion, Directional, Divergence, Laplacian, Partial
from ..operators.integrals import Integral
from ..operators.normals import GivenNormals, OutwardNormal
from ..operators.offset import Offset
from ..operators.priors import LogNormal, Normal, Uniform
from ..operators.rows import Row
from ..operators.shift import Shift
from ..operators.tabulated import Table, Tabulated
from ..operators.tensors import ConstantTensor
from ..operators.vanishing import Vanishing
from ..training import Round, Step, Training
from ..training.newton import Iteration
from ..verdicts import Comparison, Verdict

OWN_TAG = "user:"

_CLASSES: dict[str, type] = {
    "activation": Activation,
    "affine": Affine,
    "base-kernel": BaseKernel,
    "bottleneck": Bottleneck,
    "calibration": Calibration,
    "coefficient": Coefficient,
    "comparison": Comparison,
    "component": Component,
    "composed": Composed,
    "constant": Constant,
    "constant-mean": ConstantMean,
    "constant-tensor": ConstantTensor,
    "coordinates": Coordinates,
    "diffusion": Diffusion,
    "directional": Directional,
    "divergence": Divergence,
    "entries": Entries,
    "estimates": Estimates,
    "factorised": Factorised,
    "function-mean": FunctionMean,
    "given-normals": GivenNormals,
    "identity": Identity,
    "identity-embedding": IdentityEmbedding,
    "integral": Integral,
    "invariants": Invariants,
    "iterative": Iterative,
    "iteration": Iteration,
    "kernel": Kernel,
    "laplacian": Laplacian,
    "latent-jet": LatentJet,
    "learned": Learned,
    "linear": Linear,
    "log-normal": LogNormal,
    "matern": Matern,
    "mixing": Mixing,
    "mlp": MLP,
    "model": Model,
    "network-mean": NetworkMean,
    "normal": Normal,
    "normalisation": Normalisation,
    "number": Number,
    "observation": Observation,
    "offset": Offset,
    "outward-normal": OutwardNormal,
    "parameter": Parameter,
    "partial": Partial,
    "posterior": Posterior,
    "powered": Powered,
    "preconditioner": Preconditioner,
    "probes": Probes,
    "product": Product,
    "rational-quadratic": RationalQuadratic,
    "residual": Residual,
    "round": Round,
    "row": Row,
    "scaled": Scaled,
    "shift": Shift,
    "slope": Slope,
    "stacked": Stacked,
    "squared-exponential": SquaredExponential,
    "step": Step,
    "sum": Sum,
    "table": Table,
    "tabulated": Tabulated,
    "training": Training,
    "vanishing": Vanishing,
    "uniform": Uniform,
    "verdict": Verdict,
    "worked": Worked,
    "zero-mean": ZeroMean,
}
_TAGS: dict[type, str] = {cls: tag for tag, cls in _CLASSES.items()}


def register(name: str, cls: type) -> None:
    """Let model files hold your own operator, embedding, profile or mean, under a name that you keep.

    The fields of an object are stored one by one, and a loaded object is made from them without calling `__init__`.
    Every program that saves or loads such files has to call `register` first.
    """
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise TypeError(f"register(name, cls) takes a dataclass, such as an Embedding: got {cls!r}.")
    if cls in _TAGS and not _TAGS[cls].startswith(OWN_TAG):
        raise ValueError(f"{cls.__name__} is part of pdedkl and does not need to be registered.")
    if not (isinstance(name, str) and name):
        raise TypeError(f"register(name, cls) needs a string as the name: got {name!r}.")
    _TAGS.pop(_CLASSES.get(tag := OWN_TAG + name, cls), None)  # a class that was defined again in a notebook
    _CLASSES[tag] = cls
    _TAGS[cls] = tag


def tag_of(cls: type) -> str | None:
    return _TAGS.get(cls)


def class_of(tag: str) -> type | None:
    return _CLASSES.get(tag)
