"""Kernels of one component: on the inputs, additive, on an embedding."""

from __future__ import annotations

from collections.abc import Sequence

from ..domain import Domain
from ..embeddings import Embedding, IdentityEmbedding
from .kernel import Component, Kernel, Numbers
from .profiles import Profile


def ard(domain: Domain, profile: Profile | None = None, variance: Numbers = 1.0, lengthscale: Numbers = 1.0) -> Kernel:
    """A base kernel on the inputs themselves, with one length scale for each: the paper's PDE-GP.

    **Arguments:**

    - `domain`: where the points live.
    - `profile`: the base kernel, such as `SquaredExponential()` (the default) or `Matern52()`.
    - `variance`: the variance of `u` before any data.
    - `lengthscale`: one number, or one for each input, in units of half the width of the domain.

    **Returns:** a `Kernel`.

    !!! example
        ```python
        kernel = pk.ard(domain, pk.Matern52(), lengthscale=[1.0, 1.0, 0.5])
        ```
    """
    return deep(domain, IdentityEmbedding(), profile, None, variance, lengthscale)


def additive(
    domain: Domain, profile: Profile | None = None, variance: Numbers | None = None, lengthscale: Numbers = 1.0
) -> Kernel:
    """`k(q, q') = Σ_i k_i(q_i, q'_i)`: a sum of functions of one input each.

    **Arguments:**

    - `domain`: where the points live.
    - `profile`: the base kernel, such as `SquaredExponential()` (the default) or `Matern52()`.
    - `variance`: one number for each input, or one for all; by default they sum to one.
    - `lengthscale`: one number, or one for each input, in units of half the width of the domain.

    **Returns:** a `Kernel`.

    !!! example
        ```python
        kernel = pk.additive(domain)
        ```
    """
    groups = [(i,) for i in range(domain.dim)]
    return deep(
        domain, IdentityEmbedding(), profile, groups, 1.0 / domain.dim if variance is None else variance, lengthscale
    )


def deep(
    domain: Domain,
    embedding: Embedding,
    profile: Profile | None = None,
    groups: Sequence[Sequence[int]] | None = None,
    variance: Numbers = 1.0,
    lengthscale: Numbers = 1.0,
) -> Kernel:
    """`k(h(q), h(q'))`: a base kernel on an embedding `h`, such as a network.

    **Arguments:**

    - `domain`: where the points live.
    - `embedding`: the map `h` to latent coordinates.
    - `profile`: the base kernel, such as `SquaredExponential()` (the default) or `Matern52()`.
    - `groups`: lists of latent coordinates, one list for each group; all in one group by default.
    - `variance`: one number, or one for each group.
    - `lengthscale`: one number, or one for each latent coordinate.

    **Returns:** a `Kernel`.

    !!! example
        ```python
        kernel = pk.deep(domain, pk.Residual(3, 2, width=8, key=jax.random.key(0)))
        ```
    """
    return Kernel((Component(domain, embedding, profile, groups, variance, lengthscale),))
