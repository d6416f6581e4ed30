"""Draws of unknown numbers, kernel and noise by the No-U-Turn sampler, the embedding held.

Chains run in the coordinates `z` of `training/curvature.py`, in which the posterior is about a standard normal one: no
mass matrix has to be found, and the step size is adapted alone. Two chains that start far apart and agree (`R̂` near
one) have forgotten where they started; the effective sample size says how many independent draws theirs are worth.

It needs blackjax, which `pip install pdedkl[nuts]` installs.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ..archives import opened
from ..files import write_atomically
from ..inference.estimates import prior_spreads, unknowns_of
from ..training.curvature import FURTHEST, Curvature
from .parameters import IDENTIFIED, Estimate, Parameters, parameters_of_posterior
from .profiles import minimum_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..inference import Posterior

# The acceptance rate that step sizes are adapted to, and where they start for `r` coordinates: `START r^{−1/4}`.
ACCEPTED, START = 0.8, 0.8
# Chains start this many standard deviations from the minimum, and are stored after as many draws.
APART, BLOCK = 1.0, 25
# A chain that has not forgotten its start, and the number of effective draws that an interval needs.
MIXED, ENOUGH = 1.01, 100


class Chains(Parameters):
    """The unknown numbers by their draws: `posterior.parameters.posterior(method="nuts")`.

    **Arguments:**

    - `draws`: for each number an array of shape `(chains, draws)`.
    - `r_hat`: for each number, how much the chains differ: 1 if they agree.
    - `effective`: for each number, how many independent draws its draws are worth.
    """

    draws: dict[str, np.ndarray]
    r_hat: dict[str, float]
    effective: dict[str, float]

    def plot(self) -> Figure:
        """A histogram of the draws of each number, beside its normal approximation."""
        from ..reports.profiles import drawn

        return drawn(self, {}, {name: draws.ravel() for name, draws in self.draws.items()})

    def to_arviz(self) -> Any:
        """The draws as `arviz.InferenceData`; it needs arviz."""
        try:
            import arviz
        except ModuleNotFoundError:
            raise ModuleNotFoundError("to_arviz() needs arviz: pip install arviz.") from None
        return arviz.from_dict({"posterior": self.draws}) if _new(arviz) else arviz.from_dict(posterior=self.draws)


def _new(arviz: Any) -> bool:
    """Whether `from_dict` takes all groups in one dictionary, as it does from version 1 on."""
    return int(arviz.__version__.split(".")[0]) >= 1


def sampled(
    posterior: Posterior,
    *,
    chains: int = 2,
    draws: int = 300,
    warmup: int = 150,
    seed: int = 0,
    checkpoint: str | Path | None = None,
) -> Chains:
    """Draws of the unknown numbers of a posterior. A run with a `checkpoint` that was killed goes on where it was."""
    for name, count in (("chains", chains), ("draws", draws), ("warmup", warmup)):
        if not (isinstance(count, int) and count >= 1):
            raise ValueError(f"`{name}` needs a positive whole number: got {count!r}.")
    laplace = parameters_of_posterior(posterior)
    if not laplace:
        raise ValueError("There are no unknown numbers to draw.")
    blackjax = _blackjax()
    found = minimum_of(posterior)
    z = np.stack(
        [_chain(blackjax, found, draws, warmup, seed + k, _own(checkpoint, k)) for k in range(chains)]
    )  # (chains, draws, r)
    start = found.trained.x[len(found.trained.x) - found.numbers :]
    raws = start + z @ found.of_numbers.T
    return _described(posterior, laplace, raws, blackjax)


def _blackjax() -> Any:
    try:
        import blackjax
        import blackjax.diagnostics
        from blackjax.adaptation import step_size  # noqa: F401  (as an attribute)
    except ModuleNotFoundError:
        raise ModuleNotFoundError('method="nuts" needs blackjax: pip install "pdedkl[nuts]".') from None
    return blackjax


def _own(checkpoint: str | Path | None, chain: int) -> Path | None:
    return None if checkpoint is None else Path(f"{checkpoint}.{chain}")


def _log_density(found: Curvature) -> Callable[[Any], Any]:
    objective, x, transform = found.trained.objective, jnp.asarray(found.trained.x), jnp.asarray(found.transform)
    count = objective.weight_count
    # A noise level that is at its limit changes nothing: without this it would wander off.
    furthest = jnp.full(len(transform), FURTHEST).at[len(transform) - found.numbers :].set(jnp.inf)

    def at(z: Any) -> Any:
        move = transform @ z
        value, _ = objective.value(jnp.concatenate([x[:count], x[count:] + move]))
        rise = value - found.trained.value + 0.5 * jnp.sum((move / furthest) ** 2)
        return jnp.where(jnp.isfinite(rise), -rise, -jnp.inf)

    return at


def _chain(blackjax: Any, found: Curvature, draws: int, warmup: int, seed: int, path: Path | None) -> np.ndarray:
    """One chain: blocks of draws, the first ones with a step size that is adapted."""
    log_density, size = _log_density(found), found.transform.shape[1]
    start, update, final = blackjax.adaptation.step_size.dual_averaging_adaptation(ACCEPTED)
    kernel = blackjax.nuts.build_kernel()
    unit = jnp.ones(size)

    @jax.jit
    def block(state: Any, adapted: Any, step: Any, keys: Any) -> Any:
        def one(carry: Any, key: Any) -> Any:
            state, adapted = carry
            length = jnp.where(step > 0, step, jnp.exp(adapted.log_step_size))
            state, info = kernel(key, state, log_density, length, unit)
            return (state, update(adapted, info.acceptance_rate)), state.position

        return jax.lax.scan(one, (state, adapted), keys)

    keys = jax.random.split(jax.random.key(seed), draws + warmup + 1)
    made, step = np.zeros((0, size)), 0.0
    digest = _digest(found, draws, warmup, seed)
    state = blackjax.nuts.init(APART * jax.random.normal(keys[0], (size,)), log_density)
    if path is not None and path.is_file() and (kept := _kept(path, digest, size)) is not None:
        made, step = kept
        state = blackjax.nuts.init(jnp.asarray(made[-1]), log_density)
    adapted = start(START * size**-0.25)
    while len(made) < warmup + draws:
        # The warm-up is one block: the state of its adaptation is not stored.
        stop = warmup if len(made) < warmup else min(len(made) + BLOCK, warmup + draws)
        (state, adapted), positions = block(state, adapted, jnp.asarray(step), keys[1 + len(made) : 1 + stop])
        made = np.concatenate([made, np.asarray(positions)])
        step = step or float(final(adapted))
        if path is not None:
            buffer = io.BytesIO()
            np.savez(buffer, made=made, step=np.asarray([step]), digest=np.asarray(digest))
            write_atomically(path, buffer.getvalue())
    return made[warmup:]


def _kept(path: Path, digest: list[float], size: int) -> tuple[np.ndarray, float] | None:
    """The draws and the step size of this run, if the file holds them."""
    with opened(path) as archive:
        if not set(archive.names) >= {"made", "step", "digest"} or archive.array("digest").tolist() != digest:
            return None
        made, step = archive.array("made"), archive.array("step")
    return (made, float(step[0])) if made.ndim == 2 and made.shape[1] == size and step.shape == (1,) else None


def _digest(found: Curvature, draws: int, warmup: int, seed: int) -> list[float]:
    """Numbers that tell one run from another."""
    text = b"".join(np.ascontiguousarray(part).tobytes() for part in (found.trained.x, found.transform))
    return [float(b) for b in hashlib.sha256(text).digest()[:8]] + [float(n) for n in (draws, warmup, seed)]


def _described(posterior: Posterior, laplace: Parameters, raws: np.ndarray, blackjax: Any) -> Chains:
    unknown = unknowns_of(posterior)
    prior = prior_spreads(unknown)
    estimates: dict[str, Estimate] = {}
    draws, r_hat, effective = {}, {}, {}
    for i, (name, one) in enumerate(unknown.items()):
        values = np.asarray(one.support.value(raws[..., i]), dtype=float)
        raw_std = float(np.std(raws[..., i]))
        draws[name] = values
        halves = np.concatenate(np.array_split(raws[..., i], 2, axis=1)[:2]) if raws.shape[1] % 2 == 0 else raws[..., i]
        r_hat[name] = float(blackjax.diagnostics.potential_scale_reduction(jnp.asarray(halves)))
        effective[name] = float(blackjax.diagnostics.effective_sample_size(jnp.asarray(raws[..., i])))
        estimates[name] = replace(
            laplace[name],
            estimate=float(np.median(values)),
            mean=float(np.mean(values)),
            std=float(np.std(values)),
            identified=raw_std < IDENTIFIED * prior[i],
            draws=values.ravel(),
        )
    flat = raws.reshape(-1, len(unknown))
    correlation = np.atleast_2d(np.corrcoef(flat, rowvar=False))
    findings = (*laplace.findings, *_unmixed(r_hat, effective))
    made = Chains(posterior, estimates, correlation, findings, "nuts")
    made.draws, made.r_hat, made.effective = draws, r_hat, effective
    return made


def _unmixed(r_hat: dict[str, float], effective: dict[str, float]) -> Sequence[str]:
    """A sentence for each number whose chains have not run long enough."""
    return [
        f"The chains of {name} have not mixed: R̂ = {r_hat[name]:.3f}, {effective[name]:.0f} effective draws. Draw more."
        for name in r_hat
        if not (r_hat[name] < MIXED and effective[name] > ENOUGH)
    ]
