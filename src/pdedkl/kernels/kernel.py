"""Kernels: sums of components, each a base kernel over groups of the latent coordinates of its own embedding."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from operator import index
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..compilation import array_of
from ..domain import Domain, Layout
from ..embeddings import Embedding, IdentityEmbedding, LatentJet, Normalisation, push_forward
from ..operators import Operator, Row, Vanishing, identity
from ..operators.base import Place, translated
from ..operators.rows import coordinates_of
from ..precision import require_float64
from ..shown import Rows, Shown, known, over, plural, span
from .covariance import covariance, covariances
from .groups import sum_over_groups
from .mixing import Mixing, mixing_of
from .profiles import Profile, SquaredExponential

Groups = tuple[tuple[int, ...], ...]
Numbers = float | Sequence[float] | np.ndarray | Array

# How many pairs of a point and a direction are pushed through a network at once.
PAIRS_PER_CHUNK = {"cpu": 1 << 12, "gpu": 1 << 19}


class BaseKernel(eqx.Module):
    """`k(z, z') = Σ_g σ_g² φ(|z_g − z'_g|²/2)` over groups `g` of latent coordinates, in units of the length scales."""

    profile: Profile
    log_variance: Float[Array, " groups"]
    groups: Groups = eqx.field(static=True)

    def block(self, left: LatentJet, right: LatentJet) -> Float[Array, "m n"]:
        if self.groups == (tuple(range(left.z.shape[-1])),):
            return jnp.exp(self.log_variance[0]) * covariances(self.profile, left, right)
        total = jnp.zeros((left.z.shape[0], right.z.shape[0]))
        for numbers, members in self.by_size():
            variance = jnp.exp(self.log_variance)[numbers]

            sides = _stack_groups(left, members), _stack_groups(right, members)
            total += sum_over_groups(self.profile, variance, *sides)
        return total

    def pair(self, left: LatentJet, right: LatentJet) -> Float[Array, ""]:
        """The covariance of one pair of jets, differentiable any number of times in either mode."""
        total = jnp.zeros(())
        for numbers, members in self.by_size():
            parts = _stack_groups(left, members), _stack_groups(right, members)
            each = jax.vmap(lambda a, b: covariance(self.profile, a, b))(*parts)
            total = total + jnp.dot(jnp.exp(self.log_variance)[numbers], each)
        return total

    def paired(self, left: LatentJet, right: LatentJet) -> Float[Array, " n"]:
        """The covariance of each left jet with the right jet of the same row."""
        return jax.vmap(self.pair)(left, right)

    def __call__(self, z: Float[Array, " h"], z_: Float[Array, " h"]) -> Float[Array, ""]:
        variance = jnp.exp(self.log_variance)
        chosen = (np.asarray(group, dtype=int) for group in self.groups)
        parts = (z[group] - z_[group] for group in chosen)
        return sum(s * self.profile(0.5 * jnp.sum(delta**2)) for s, delta in zip(variance, parts))

    def by_size(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each size of groups: the numbers of its groups, and their latent coordinates, a row for each group."""
        sizes: dict[int, list[int]] = {}
        for number, group in enumerate(self.groups):
            sizes.setdefault(len(group), []).append(number)
        return [
            (np.asarray(numbers), np.asarray([self.groups[i] for i in numbers], dtype=int))
            for numbers in sizes.values()
        ]


class Component(Shown, eqx.Module):
    """One term of a kernel: `k(q, q') = μ(q) μ(q') Σ_g σ_g² φ(|z_g − z'_g|²/2)` with latent coordinates `z = h(q)`.

    `φ` is a profile, and `g` runs over groups of latent coordinates, each divided by its length scale. The multiplier
    `μ` is one where there is none. A multiplier that vanishes on faces makes all functions of this term vanish there:
    for any process `g`, `A (μ g) = (A∘μ) g`, so it is one more operator in front of the latent jets.

    **Arguments:**

    - `domain`: where the points live. Inputs are scaled to `[-1, 1]` before the embedding.
    - `embedding`: the map `h` to latent coordinates.
    - `profile`: the base kernel, such as `SquaredExponential()` (the default) or `Matern52()`.
    - `groups`: lists of latent coordinates, one list for each group; all in one group by default.
    - `variance`: `σ²`, one number, or one for each group.
    - `lengthscale`: one number, or one for each latent coordinate.
    - `multiplier`: the function `μ`, zero on faces and spheres where `u` is known to be zero.
    - `mixing`: the fields that this term is part of, and its weights there; `Kernel.of` sets it.
    - `held`: whether training leaves this term as it is.

    !!! example
        ```python
        component = pk.Component(domain, pk.IdentityEmbedding(), groups=[(0, 1), (2,)])
        kernel = pk.Kernel((component,))
        ```
    """

    embedding: Embedding
    base: BaseKernel
    log_lengthscale: Float[Array, " h"]
    normalisation: Normalisation
    multiplier: Vanishing | None = None
    mixing: Mixing | None = None
    held: bool = eqx.field(static=True, default=False)

    def __init__(
        self,
        domain: Domain,
        embedding: Embedding,
        profile: Profile | None = None,
        groups: Sequence[Sequence[int]] | None = None,
        variance: Numbers = 1.0,
        lengthscale: Numbers = 1.0,
        multiplier: Vanishing | None = None,
        mixing: Mixing | None = None,
        held: bool = False,
    ) -> None:
        require_float64()
        if not isinstance(embedding, Embedding):
            raise TypeError(
                f"`embedding` needs to be an Embedding, such as MLP(domain.dim, 4, key=key): got {embedding!r}."
            )
        if not (profile is None or isinstance(profile, Profile)):
            raise TypeError(f"`profile` needs to be a Profile, such as Matern52(), with parentheses: got {profile!r}.")
        if embedding.input_dim not in (None, domain.dim):
            raise ValueError(
                f"The embedding takes {embedding.input_dim} inputs and the domain has {domain.dim} coordinates: "
                "make it with input_dim=domain.dim."
            )
        h = embedding.latent_dim(domain.dim)
        self.embedding = embedding
        self.normalisation = Normalisation(domain)
        chosen = _check_groups(groups, h)
        self.base = BaseKernel(
            profile or SquaredExponential(), _positive_log("variance", variance, len(chosen)), chosen
        )
        self.log_lengthscale = _positive_log("lengthscale", lengthscale, h)
        self.multiplier = multiplier
        self.mixing = mixing
        self.held = held

    def hold(self) -> Component:
        """The same term, left as it is by training.

        **Arguments:** none.

        **Returns:** a `Component`.

        !!! example
            ```python
            assert pk.ard(domain).components[0].hold().held
            ```
        """
        made = copy(self)
        object.__setattr__(made, "held", True)
        return made

    @property
    def latent_dim(self) -> int:
        """The number of latent coordinates."""
        return self.log_lengthscale.shape[0]

    def jets(
        self, operator: Operator, points: Float[Array, "n d"], move: Float[Array, " d"] | Place | None = None
    ) -> LatentJet:
        """`A` at each point as an operator on the latent space. The points go through the network once.

        **Arguments:**

        - `operator`: the operator `A`, of order two or less; or a row of several fields.
        - `points`: an array of shape `(n, d)`.
        - `move`: a vector `s`, to get the jets of `u ↦ A u(· + s)`: coefficients at `q`, everything else at `q + s`.

        **Returns:** a `LatentJet` with one row for each point, in units of the length scales.

        !!! example
            ```python
            component = pk.ard(domain).components[0]
            assert component.jets(heat, jnp.asarray(points)).z.shape == (20, 3)
            ```
        """

        if isinstance(move, Place):
            points, move = jax.vmap(move)(points), None
        if self.mixing is not None:
            operator = self.mixing.seen(operator)
        if self.multiplier is not None:
            inner = self.multiplier * identity
            operator = operator @ (inner if move is None else translated(inner, move))

        def one(q: Array) -> LatentJet:
            place = q if move is None else q + move
            jet = push_forward(operator.symbol(q), self.embedding, self.normalisation, place)
            return jet.divided(jnp.exp(self.log_lengthscale))

        size = max(1, _pairs_per_chunk() // min(max(_directions(operator, points[0]), 1), 64))
        if points.shape[0] <= 2 * size:
            return jax.vmap(one)(points)
        # More directional derivatives of wide layers do not fit into the cache. Recomputing them in the backward pass
        # is faster than reading them from memory (docs/studies.md).
        return jax.lax.map(jax.checkpoint(one), points, batch_size=size)

    def latent(self, q: Float[Array, " d"]) -> Float[Array, " h"]:
        """The latent coordinates of one point, in units of the length scales.

        **Arguments:**

        - `q`: a point.

        **Returns:** a vector with `latent_dim` entries.

        !!! example
            ```python
            z = pk.ard(domain).components[0].latent(jnp.asarray(points[0]))
            ```
        """
        return self.embedding(self.normalisation(q)) / jnp.exp(self.log_lengthscale)

    def __call__(self, q: Array, q_: Array) -> Array:
        found = self.base(self.latent(q), self.latent(q_))
        return found if self.multiplier is None else self.multiplier(q) * self.multiplier(q_) * found

    def weight(self, field: str | None) -> Array:
        """The weight with which this term enters a field.

        **Arguments:**

        - `field`: its name; `None` for the only one.

        **Returns:** a number.

        !!! example
            ```python
            assert pk.ard(domain).of("u").components[0].weight("v") == 0.0
            ```
        """
        if self.mixing is None:
            return jnp.ones(())
        return self.mixing.weight(self.mixing.names[0] if field is None else field)

    def value_at(self, q: Array, field: str | None = None) -> LatentJet:
        """The jet of `u` itself at one point, as a function of the point that differentiates in either mode.

        **Arguments:**

        - `q`: a point.
        - `field`: the name of a field, if there are several.

        **Returns:** a `LatentJet`.

        !!! example
            ```python
            assert pk.ard(domain).components[0].value_at(jnp.asarray(points[0])).c == 1.0
            ```
        """
        factor = jnp.ones(()) if self.multiplier is None else self.multiplier(q)
        factor = factor if self.mixing is None else self.weight(field) * factor
        return LatentJet(self.latent(q), factor, None, None)

    def _in_words(self) -> str | None:
        """The profile and what it is of, in words; `None` where the arrays are not known."""
        if not known(self.log_lengthscale, self.base.log_variance):
            return None
        if isinstance(self.embedding, IdentityEmbedding):
            of = plural(self.latent_dim, "input")
        else:
            of = f"{plural(self.latent_dim, 'feature')} of {type(self.embedding).__name__}"
        groups = f" in {len(self.base.groups)} groups" if len(self.base.groups) > 1 else ""
        profile = str(self.base.profile).split("(")[0]
        where = ", zero on faces" if self.multiplier is not None else ""
        return f"{profile} of {of}{groups}{where}" + (f", in {self.mixing}" if self.mixing is not None else "")

    def _described(self) -> tuple[str, Rows] | None:
        if (text := self._in_words()) is None:
            return None
        return f"Component over {over(self.normalisation.layout)}: {text}", {
            "variance": span(np.exp(self.base.log_variance)),
            "length scale": span(np.exp(self.log_lengthscale)),
        }


class Kernel(Shown, eqx.Module):
    """A sum of components, the covariance of a sum of independent processes. `k1 + k2` adds two kernels.

    **Arguments:**

    - `components`: a tuple of `Component`s over one domain. `ard`, `additive` and `deep` make kernels of one component.

    !!! example
        ```python
        kernel = pk.additive(domain) + pk.ard(domain, lengthscale=2.0)
        assert kernel(jnp.zeros(3), jnp.zeros(3)) == 2.0
        ```
    """

    components: tuple[Component, ...]

    def __check_init__(self) -> None:
        if len({part.mixing is None for part in self.components}) > 1:
            raise ValueError(
                "A kernel is one of named fields or of none: say of which fields each part is, as in "
                "ard(domain).of(u) + ard(domain).of(v)."
            )

    def __add__(self, other: Kernel) -> Kernel:
        if not isinstance(other, Kernel):
            return NotImplemented
        if self.layout != other.layout:
            raise ValueError(f"Kernels over different domains cannot be added: {self.layout} and {other.layout}.")
        return Kernel(self.components + other.components)

    def __call__(self, q: Float[Array, " d"], q_: Float[Array, " d"]) -> Float[Array, ""]:
        """`k(q, q')`, as a function that JAX can differentiate any number of times."""
        if len(self.fields) > 1:
            raise ValueError(
                f"There are several fields, {', '.join(self.fields)}: use kernel.between(field, q, other field, q')."
            )
        return self.between(None, q, None, q_)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that it is the covariance of; none if there is one without a name."""
        parts = [part.mixing.names for part in self.components if part.mixing is not None]
        return tuple(dict.fromkeys(name for names in parts for name in names))

    @property
    def functions(self) -> tuple[str, ...]:
        """The fields but for those that are unknown numbers."""
        return tuple(name for name in self.fields if not name.endswith("()"))

    def of(self, *fields: Any, weights: Sequence[float] | None = None) -> Kernel:
        """The covariance of fields that its process `g` enters: `u_a = w_a g`. Sums of such kernels are kernels too.

        For a field of some coordinates only, such as `v(x)`, it is a function of these: others change nothing.

        **Arguments:**

        - `*fields`: the fields, or their names.
        - `weights`: the weights `w_a`, which are trained; without any, all are one and stay one.

        **Returns:** a `Kernel`.

        !!! example
            ```python
            u, v = pk.fields("u", "v")
            kernel = pk.ard(domain).of(u) + pk.ard(domain).of(v) + pk.ard(domain).of(u, v, weights=[1.0, -0.5])
            assert kernel.fields == ("u", "v")
            ```
        """
        mixing = mixing_of([str(field) for field in fields], weights)
        put = lambda part: eqx.tree_at(lambda c: c.mixing, part, mixing, is_leaf=lambda node: node is None)
        found = tuple(map(put, self.components))
        only = {coordinates_of(name, self.layout) for name in mixing.names}
        if len(only) > 1:
            raise ValueError(f"A process enters fields of the same coordinates: got {', '.join(mixing.names)}.")
        indices = only.pop()
        return Kernel(found if indices is None else tuple(_over(part, indices) for part in found))

    def between(
        self, field: str | None, q: Float[Array, " d"], other: str | None, q_: Float[Array, " d"]
    ) -> Float[Array, ""]:
        """`Σ_c w_ca w_cb k_c(q, q')`, the covariance of two fields.

        **Arguments:**

        - `field`: the name of a field; `None` where there is only one.
        - `q`: a point.
        - `other`: the name of the other field.
        - `q_`: its point.

        **Returns:** a number.

        !!! example
            ```python
            both = pk.ard(domain).of("u", "v", weights=[1.0, 2.0])
            assert both.between("u", jnp.zeros(3), "v", jnp.zeros(3)) == 2.0
            ```
        """
        parts = [
            part(q, q_) if part.mixing is None else part.weight(field) * part.weight(other) * part(q, q_)
            for part in self.components
        ]
        return sum(parts[1:], parts[0])

    @property
    def layout(self) -> Layout:
        """The groups of coordinates of its points, each with its size."""
        return self.components[0].normalisation.layout

    @property
    def dim(self) -> int:
        """The number of coordinates of a point."""
        return sum(size for _, size in self.layout)

    @property
    def names(self) -> tuple[str, ...]:
        """One name for each coordinate of a point, such as `x[0]` and `t`."""
        stored = self.components[0].normalisation.names
        return stored or tuple(f"{name}[{i}]" if size > 1 else name for name, size in self.layout for i in range(size))

    @property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """The lower and the upper ends of the coordinates."""
        normalisation = self.components[0].normalisation
        centre, half = np.asarray(normalisation.centre), 1.0 / np.asarray(normalisation.scale)
        return centre - half, centre + half

    def times(self, multiplier: Vanishing | None) -> Kernel:
        """The covariance of `μ g`, where this kernel is that of `g`.

        **Arguments:**

        - `multiplier`: the function `μ`; `None` leaves the kernel as it is.

        **Returns:** a `Kernel`.

        !!! example
            ```python
            assert pk.ard(domain).times(None) == pk.ard(domain)
            ```
        """
        if multiplier is None:
            return self
        parts = [_with_multiplier(part, multiplier) for part in self.components]
        return Kernel(tuple(parts))

    def zero_at(self, points: np.ndarray) -> np.ndarray:
        """At which points all functions with this covariance are zero.

        **Arguments:**

        - `points`: an array of shape `(n, d)`.

        **Returns:** `n` booleans.

        !!! example
            ```python
            assert not pk.ard(domain).zero_at(points).any()
            ```
        """
        q = np.asarray(points)
        found = np.ones(len(q), dtype=bool)
        for part in self.components:
            found &= np.zeros(len(q), dtype=bool) if part.multiplier is None else part.multiplier.zero_at(q)
        return found

    @property
    def smoothness(self) -> float:
        """How often its processes are differentiable in mean square: the highest order of an operator."""
        return min(component.base.profile.smoothness for component in self.components)

    def _in_words(self) -> str | None:
        """All components in words; `None` where the arrays are not known."""
        parts = [component._in_words() for component in self.components]
        return " + ".join(part or "" for part in parts) if all(parts) else None

    def _described(self) -> tuple[str, Rows] | None:
        if self._in_words() is None:
            return None
        rows = {}
        for number, part in enumerate(self.components, start=1):
            sizes = span(np.exp(part.base.log_variance)), span(np.exp(part.log_lengthscale))
            rows[f"term {number}"] = f"{part._in_words()}, variance {sizes[0]}, length scale {sizes[1]}"
        return f"Kernel over {over(self.layout)}", rows

    def check(self, operator: Operator) -> None:
        """Refuse an operator that this kernel is too rough for, or that belongs to another domain.

        **Arguments:**

        - `operator`: the operator to be observed or predicted.

        !!! example
            ```python
            pk.ard(domain).check(heat)
            ```
        """
        self._check_fields(operator)
        if operator.layout not in (None, self.layout):
            raise ValueError(
                f"{operator} and the kernel are of different domains: it acts on {operator.dim} coordinates "
                f"({', '.join(name for name, _ in operator.layout)}) and the kernel is over {self.dim} "
                f"({', '.join(name for name, _ in self.layout)})."
            )
        for component in self.components:
            profile = component.base.profile
            if operator.order > profile.smoothness:
                raise ValueError(
                    f"{profile} is differentiable {profile.smoothness:g} times in mean square and {operator} needs "
                    f"{operator.order}: use SquaredExponential()"
                    + (' and engine="autodiff".' if operator.order > 2 else ".")
                )

    def _check_fields(self, operator: Operator) -> None:
        names = self.fields
        if not isinstance(operator, Row):
            if len(names) > 1:
                raise ValueError(
                    f"There are several fields, {', '.join(names)}: say of which {operator} is, as in A @ {names[0]}."
                )
            return
        if not names:
            raise ValueError(
                f"{operator} is a row of named fields, and the kernel has none: ard(domain).of({operator.names[0]})."
            )
        if unknown := [name for name in operator.names if name not in names]:
            raise ValueError(
                f"{operator} contains the field {unknown[0]}, which is not known here: there is {', '.join(names)}."
            )


def _over(component: Component, indices: tuple[int, ...]) -> Component:
    """The component as a function of some coordinates only; of none, it is a number of variance one, and held."""
    if not isinstance(component.embedding, IdentityEmbedding):
        raise ValueError(
            f"A field of some coordinates only needs a kernel on the inputs, such as ard(domain): got one on "
            f"{type(component.embedding).__name__}."
        )
    if not indices:
        base = BaseKernel(component.base.profile, jnp.zeros(1), ((),))
        return eqx.tree_at(lambda c: c.base, component, base).hold()
    groups = tuple(tuple(i for i in group if i in indices) for group in component.base.groups)
    return eqx.tree_at(lambda c: c.base, component, replace(component.base, groups=groups))


def _with_multiplier(component: Component, multiplier: Vanishing) -> Component:
    return eqx.tree_at(lambda c: c.multiplier, component, multiplier, is_leaf=lambda node: node is None)


def _directions(operator: Operator, q: Array) -> int:
    symbol = jax.eval_shape(operator.symbol, q)
    return len(symbol.axes) + (0 if symbol.directions is None else symbol.directions.shape[0])


def _pairs_per_chunk() -> int:
    return PAIRS_PER_CHUNK.get(jax.default_backend(), PAIRS_PER_CHUNK["gpu"])


def _stack_groups(jet: LatentJet, members: np.ndarray) -> LatentJet:
    """The jet as seen by functions of each group of latent coordinates alone, with the groups as the leading axis.

    `members` holds the coordinates of each group as a row; other leading axes are kept.
    """
    G, axis = jet.diffusion, jet.z.ndim - 1
    if members.shape[1] == 0:
        # A constant is a function of one coordinate that is zero everywhere.
        c = None if jet.c is None else jnp.broadcast_to(jet.c, (len(members), *jet.c.shape))
        return LatentJet(jnp.zeros((len(members), *jet.z.shape[:-1], 1)), c, None, None)
    if G is not None:
        diagonal = G.ndim == jet.z.ndim
        G = G[..., members] if diagonal else G[..., members[:, :, None], members[:, None, :]]
        G = jnp.moveaxis(G, axis, 0)
    c = None if jet.c is None else jnp.broadcast_to(jet.c, (len(members), *jet.c.shape))
    drift = None if jet.drift is None else jnp.moveaxis(jet.drift[..., members], axis, 0)
    return LatentJet(jnp.moveaxis(jet.z[..., members], axis, 0), c, drift, G)


def _check_groups(groups: Sequence[Sequence[int]] | None, h: int) -> Groups:
    if groups is None:
        return (tuple(range(h)),)
    try:
        chosen = tuple(tuple(index(i) for i in group) for group in groups)
    except TypeError:
        chosen = ()
    flat = [i for group in chosen for i in group]
    distinct = all(0 < len(group) == len(set(group)) for group in chosen)
    if not flat or not distinct or not set(flat) <= set(range(h)):
        raise ValueError(
            f"`groups` needs a list of groups, such as [(0, 1), (2,)], of distinct latent coordinates 0 … {h - 1}: "
            f"got {groups}."
        )
    return chosen


def _positive_log(name: str, value: Numbers, n: int) -> Array:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` needs numbers: got {value!r}.") from None
    if array.ndim > 1 or (array.ndim == 1 and array.shape[0] != n):
        raise ValueError(f"`{name}` needs one number or {n} of them: got shape {array.shape}.")
    if not (np.all(np.isfinite(array)) and np.all(array > 0)):
        raise ValueError(f"`{name}` needs positive, finite numbers: got {value}.")
    return array_of(np.broadcast_to(np.log(array), (n,)))
