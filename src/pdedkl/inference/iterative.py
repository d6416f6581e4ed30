"""Solving without the Gram matrix: conjugate gradients over tiles that are computed anew in every step.

In units of the noise, with `D` the noise variances, the matrix is `S = D^-½ K D^-½ + I`. Kernels are smooth, so `K` is
a matrix of low rank up to the noise: a pivoted Cholesky factorisation of a few hundred columns leaves a remainder that
is smaller than the noise, and `M = L Lᵀ + I` is nearly `S`. A few steps of conjugate gradients do the rest.

With `L = U Σ Vᵀ`, `M⁻¹` takes `v` to `(v − U Uᵀ v) + U (1 + Σ²)⁻¹ Uᵀ v`. The textbook form `v − L (1 + LᵀL)⁻¹ Lᵀ v`
would lose every direction below `1e-16` of the largest one, and those are not small compared with the noise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float

from .gram import apart, offsets, row_count
from .memory import check_columns_fit, check_fits, fits
from .solver import Gram, Solver

SOLVERS = ("auto", "dense", "iterative")

# Rows and columns of a tile. On a CPU a tile should stay in the cache; a GPU needs large tiles.
TILE = {"cpu": 256, "gpu": 2048}

EPSILON = float(jnp.finfo(float).eps)

# Noise below this fraction of a row's variance is raised to it, and reported as jitter: less noise is lost in rounding.
LEAST_NOISE = 1e-13

# A preconditioner is complete if it leaves at most `REMAINDER` of the variance of each row, in units of its noise, or
# at most `ROUNDINGS` rounding errors of it.
REMAINDER = 1e-6
ROUNDINGS = 30
MOST_COLUMNS = 2000
MOST_STEPS = 1000
# The error of the mean, relative to the prior's standard deviation, is about this times the square root of `yᵀ K⁻¹ y`.
TOLERANCE = 1e-11
# The gain over the last `WINDOW` steps estimates the error before them (Hestenes and Stiefel).
WINDOW = 5


class Preconditioner(eqx.Module):
    """`M = U Σ² Uᵀ + I`."""

    basis: Float[Array, "n k"]
    singular: Float[Array, " k"]

    def solve(self, v: Float[Array, "n m"]) -> Float[Array, "n m"]:
        inside = self.basis.T @ v
        outside = v - self.basis @ inside
        again = self.basis.T @ outside  # not zero because of rounding
        outside = outside - self.basis @ again
        return outside + self.basis @ ((inside + again) / (1 + self.singular[:, None] ** 2))

    def power(self, exponent: float, v: Float[Array, "n m"]) -> Float[Array, "n m"]:
        """`M^p v`."""
        return v + self.basis @ (((1 + self.singular[:, None] ** 2) ** exponent - 1) * (self.basis.T @ v))

    def root(self, v: Float[Array, "n m"]) -> Float[Array, "rows m"]:
        """`w` with `|w|² = vᵀ M⁻¹ v`, each part accurate to its last digit."""
        inside = self.basis.T @ v
        outside = v - self.basis @ inside
        return jnp.concatenate([outside, inside / jnp.sqrt(1 + self.singular[:, None] ** 2)])

    def log_determinant(self) -> Float[Array, ""]:
        return jnp.sum(jnp.log1p(self.singular**2))


class Iterative(Solver):
    """The preconditioner, in units of the noise; `steps` and `error` are those of the solve for the weights `K⁻¹ y`."""

    preconditioner: Preconditioner
    scale: Float[Array, " n"]
    steps: Float[Array, ""]
    error: Float[Array, ""]
    mesh: Mesh | None = eqx.field(static=True, default=None)

    def solve(self, gram: Gram, right: Float[Array, "n ..."]) -> Float[Array, "n ..."]:
        columns = right if right.ndim == 2 else right[:, None]
        found = self._solve(gram, columns)
        return (self.scale[:, None] * (found.start + found.change)).reshape(right.shape)

    def explained(self, gram: Gram, right: Float[Array, "n m"]) -> Float[Array, " m"]:
        """`bᵀ S⁻¹ b = bᵀ M⁻¹ b + x₀ᵀr₀ + r₀ᵀ S⁻¹ r₀`, with `x₀ = M⁻¹ b` and its residual `r₀`.

        The first term is nearly the whole, and rounding of the residual does not change it. The last term is computed
        as `r₀ᵀd + dᵀr`, with `d ≈ S⁻¹ r₀` and the residual `r` of `d`. This is too small by the square of the error of
        `d` in the norm of `S`, so a predicted variance is never too small.
        """
        root = self.preconditioner.root(self.scale[:, None] * right)
        x, first, d, r, _, _ = self._solve(gram, right)
        return jnp.sum(root**2, axis=0) + jnp.sum(first * (x + d) + d * r, axis=0)

    def cross(self, gram: Gram, left: Float[Array, "n l"], right: Float[Array, "n m"]) -> Float[Array, "l m"]:
        """`aᵀ S⁻¹ b ≈ aᵀ M⁻¹ b + aᵀd + (M⁻¹ a)ᵀr`, with the change `d` and the residual `r` of the solve for `b`."""
        a, b = (self.scale[:, None] * columns for columns in (left, right))
        found, root = self._solve(gram, right), self.preconditioner.root
        return root(a).T @ root(b) + a.T @ found.change + self.preconditioner.solve(a).T @ found.left

    def log_determinant(self) -> Float[Array, ""]:
        """The log-determinant of the preconditioner with the noise; that of `K` is larger by less than `tr(S − M)`."""
        return self.preconditioner.log_determinant() - 2 * jnp.sum(jnp.log(self.scale))

    def _solve(self, gram: Gram, right: Float[Array, "n m"]) -> Solved:
        return self.solve_scaled(gram, self.scale[:, None] * right)

    def times(self, gram: Gram, v: Float[Array, "n m"]) -> Float[Array, "n m"]:
        """`S v`."""
        return scaled_product(gram, self.scale, self.mesh, v)

    def solve_scaled(self, gram: Gram, b: Float[Array, "n m"], tolerance: Array | float = TOLERANCE) -> Solved:
        """`S⁻¹ b`, each column to its own tolerance."""
        diagonal = self.scale**2 * gram.diagonal() + 1
        return conjugate_gradients(partial(self.times, gram), self.preconditioner, b, diagonal, tolerance)


class Solved(NamedTuple):
    """`S (x₀ + d) ≈ b`: the start `x₀ = M⁻¹ b` and its residual, the change `d`, and the final residual `left`.

    `steps` are those of the slowest column. `error` is the largest relative residual of a column, in the norm of `S⁻¹`.
    """

    start: Float[Array, "n m"]
    residual: Float[Array, "n m"]
    change: Float[Array, "n m"]
    left: Float[Array, "n m"]
    steps: Float[Array, ""]
    error: Float[Array, ""]


def chosen_solver(solver: str, n: int, matrices: int, mesh: Mesh | None) -> str:
    """`"dense"` if it is asked for, or for `"auto"` if `matrices` arrays of `n × n` fit; else `"iterative"`."""
    if solver not in SOLVERS:
        raise ValueError(f"Unknown solver {solver!r}: choose one of {', '.join(SOLVERS)}.")
    if mesh is not None and solver == "dense":
        raise ValueError('A mesh is for solver="iterative": a dense factorisation is made on one device.')
    if solver == "auto":
        solver = "iterative" if mesh is not None or not fits(n, matrices, announce=True) else "dense"
    if solver == "dense":
        check_fits(n, matrices)
    else:
        check_columns_fit(n, min(n, MOST_COLUMNS))
    return solver


def plain_mesh(mesh: Mesh | None) -> Mesh | None:
    """The same devices, with axes that the compiler may use as it likes."""
    return None if mesh is None else Mesh(mesh.devices, mesh.axis_names)


def solved(gram: Gram, residual: Float[Array, " n"], mesh: Mesh | None) -> tuple[Iterative, Array, Array, Array]:
    """A solver, the weights `K⁻¹ y`, whether its preconditioner is complete, and the jitter."""
    solver, complete, jitter = preconditioned(gram, mesh)
    found = solver._solve(gram, residual[:, None])
    alpha = solver.scale * (found.start + found.change)[:, 0]
    return dataclasses.replace(solver, steps=found.steps, error=found.error), alpha, complete, jitter


def preconditioned(gram: Gram, mesh: Mesh | None) -> tuple[Iterative, Array, Array]:
    """A solver that has not solved anything yet; whether its preconditioner is complete; and the jitter.

    A complete preconditioner leaves almost nothing of the variances. The jitter is the smallest noise that was allowed,
    relative to each row's variance, or zero if no noise had to be raised to it.
    """
    least = LEAST_NOISE * gram.diagonal()
    scale = jnp.maximum(gram.noise, least) ** -0.5
    columns, complete = pivoted_columns(gram, scale, min(MOST_COLUMNS, scale.shape[0]))
    solver = Iterative(preconditioner_of(columns), scale, jnp.zeros(()), jnp.zeros(()), mesh)
    return solver, complete, jnp.where(jnp.any(gram.noise < least), LEAST_NOISE, 0.0)


def conjugate_gradients(
    times: Callable[[Array], Array],
    preconditioner: Preconditioner,
    b: Float[Array, "n m"],
    diagonal: Float[Array, " n"],
    tolerance: Array | float = TOLERANCE,
) -> Solved:
    """`S⁻¹ b` for all columns at once, each with its own step lengths, until all have converged to their tolerances.

    A step of length `a` lowers the square of the error in the norm of `S` by `a rᵀM⁻¹r`. So the gain over the last few
    steps is a lower bound of the squared error before them. Residuals may grow for many steps; this error never does.

    Rounding makes an error of about `ε (S_ii Σ_j S_jj x_j²)^½` in row `i` of `S x`, with the `diagonal` entries `S_ii`.
    A residual of that size is only rounding, and counts as zero.
    """

    def energy(r: Array, z: Array) -> Array:
        return jnp.maximum(jnp.sum(r * z, axis=0), 0.0)

    def goal(d: Array) -> Array:
        """The squared error to reach: from the tolerance, or from rounding if that is larger."""
        x = start + d
        rounding = EPSILON**2 * jnp.sum(diagonal) * jnp.sum(diagonal[:, None] * x**2, axis=0)
        return jnp.maximum(tolerance**2 * jnp.abs(jnp.sum(b * x, axis=0)), rounding)

    def unfinished(state: tuple) -> Array:
        d, *_, gains, steps = state
        return (steps < MOST_STEPS) & jnp.any(jnp.sum(gains, axis=0) > goal(d))

    def step(state: tuple) -> tuple:
        d, r, p, rz, gains, steps = state
        Sp = times(p)
        length = ratio(rz, jnp.sum(p * Sp, axis=0))
        d, r = d + length * p, r - length * Sp
        z = preconditioner.solve(r)
        after = energy(r, z)
        gains = jnp.roll(gains, 1, axis=0).at[0].set(length * rz)
        return d, r, z + ratio(after, rz) * p, after, gains, steps + 1

    start = preconditioner.solve(b)
    residual = b - times(start)
    z = preconditioner.solve(residual)
    rz = energy(residual, z)
    rough = rz > goal(jnp.zeros_like(b))
    residual, z, rz = (jnp.where(rough, v, 0.0) for v in (residual, z, rz))
    gains = jnp.where(rough, jnp.inf, jnp.zeros((WINDOW, b.shape[1])))
    begin = (jnp.zeros_like(b), residual, z, rz, gains, jnp.asarray(0))
    d, r, _, _, gains, steps = jax.lax.while_loop(unfinished, step, begin)
    error = jnp.sqrt(jnp.max(ratio(jnp.sum(gains, axis=0), jnp.abs(jnp.sum(b * (start + d), axis=0)))))
    return Solved(start, residual, d, r, steps.astype(float), error)


def ratio(a: Array, b: Array) -> Array:
    return jnp.where(b > 0, a / jnp.where(b > 0, b, 1.0), 0.0)


def preconditioner_of(columns: Float[Array, "n k"]) -> Preconditioner:
    Q, R = jnp.linalg.qr(columns)
    rotation, singular, _ = jnp.linalg.svd(R)
    return Preconditioner(Q @ rotation, singular)


def pivoted_columns(gram: Gram, scale: Float[Array, " n"], most: int) -> tuple[Float[Array, "n k"], Array]:
    """Columns `L` of a Cholesky factorisation of `D^-½ K D^-½` that takes the largest remaining variance first.

    It ends when the remaining variance of each row is small compared with its noise, or after `most` columns. Columns
    that are not needed are zero. The second result says whether all remaining variances are small.
    """
    remaining = scale**2 * gram.diagonal()
    columns = jnp.zeros((scale.shape[0], most))
    enough = jnp.maximum(REMAINDER, ROUNDINGS * EPSILON * remaining)

    def unfinished(state: tuple[Array, Array, Array]) -> Array:
        k, remaining, _ = state
        return (k < most) & jnp.any(remaining > enough)

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        k, remaining, columns = state
        pivot = jnp.argmax(jnp.where(remaining > enough, remaining, 0.0))
        column = scale * scale[pivot] * gram.column(pivot) - columns @ columns[pivot]
        column = column / jnp.sqrt(remaining[pivot])
        left = jnp.maximum(remaining - column**2, 0.0).at[pivot].set(0.0)
        return k + 1, left, columns.at[:, k].set(column)

    _, remaining, columns = jax.lax.while_loop(unfinished, step, (jnp.asarray(0), remaining, columns))
    return columns, jnp.all(remaining <= enough)


def scaled_product(gram: Gram, scale: Float[Array, " n"], mesh: Mesh | None, v: Float[Array, "n m"]) -> Array:
    """`S v`."""
    scaled = scale[:, None] * v
    return scale[:, None] * product(gram.block, gram.sections, scaled, mesh) + v


def product(
    block: Callable[[Any, Any], Array], sections: Sequence[Any], v: Float[Array, "n m"], mesh: Mesh | None = None
) -> Float[Array, "n m"]:
    """`K v`, tile by tile; with a mesh each of its devices takes a part of the rows."""
    starts = offsets(sections)
    devices = 1 if mesh is None else mesh.size
    right = [tiled(rows, 1) for rows in sections]
    parts = [tiled(v[i:j], 1, fill=0.0) for i, j in pairwise(starts)]

    def some_rows(tiles: Any, right: Any, parts: Any) -> Array:
        def one(left: Any) -> Array:
            total = jnp.zeros((row_count(left), v.shape[1]))
            for columns, part in zip(right, parts):
                add = lambda total, tile, left=left: (total + apart(tile[0], block, left, tile[1]) @ tile[2], None)
                total, _ = jax.lax.scan(add, total, (jnp.arange(row_count(columns)), columns, part))
            return total

        return jax.lax.map(one, tiles)

    out = []
    for rows in sections:
        task = some_rows
        if mesh is not None:
            row, whole = PartitionSpec(mesh.axis_names), PartitionSpec()
            task = jax.shard_map(some_rows, mesh=mesh, in_specs=(row, whole, whole), out_specs=row, check_vma=False)
        found = task(tiled(rows, devices), right, parts)
        out.append(found.reshape(-1, v.shape[1])[: row_count(rows)])
    return everywhere(jnp.concatenate(out), mesh)


def everywhere(tree: Any, mesh: Mesh | None) -> Any:
    """The same arrays, with a full copy on each device."""
    if mesh is None:
        return tree
    return jax.lax.with_sharding_constraint(tree, NamedSharding(mesh, PartitionSpec()))


def tiled(rows: Any, devices: int, fill: float | None = None) -> Any:
    """Rows in tiles of equal size, the same number for each device. Padding repeats the last row, or is `fill`."""
    n = row_count(rows)
    most = TILE.get(jax.default_backend(), TILE["gpu"])
    count = -(-n // most)
    count = -(-count // devices) * devices
    size = -(-n // count)
    extra = count * size - n

    def tile(leaf: Array) -> Array:
        if extra:
            last = jnp.broadcast_to(leaf[-1:] if fill is None else fill, (extra, *leaf.shape[1:]))
            leaf = jnp.concatenate([leaf, last.astype(leaf.dtype)])
        return leaf.reshape(count, size, *leaf.shape[1:])

    return jax.tree.map(tile, rows)
