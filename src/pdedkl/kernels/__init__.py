"""Kernels: profiles, sums over latent groups, sums of components, and the one covariance formula."""

from .covariance import covariance, covariances, variances
from .families import additive, ard, deep
from .groups import sum_over_groups
from .kernel import BaseKernel, Component, Kernel
from .profiles import Matern, Matern52, Matern72, Matern92, Profile, RationalQuadratic, SquaredExponential

__all__ = [
    "BaseKernel",
    "Component",
    "Kernel",
    "Matern",
    "Matern52",
    "Matern72",
    "Matern92",
    "Profile",
    "RationalQuadratic",
    "SquaredExponential",
    "additive",
    "ard",
    "covariance",
    "covariances",
    "deep",
    "sum_over_groups",
    "variances",
]
