"""What training minimises: its parts against their formulas, its gradient, and values left out for real."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.operators import vanishing
from pdedkl.scales import NOISE_OF_EXACT, data_scales, signal_variance
from pdedkl.training import objective as module
from pdedkl.training import starts
from pdedkl.training.objective import (
    NOISE_FLOOR,
    Objective,
    largest_error,
    left_out,
    left_out_rows,
    trainable,
    value_and_gradient,
    weights_of,
)
from pdedkl.training.starts import model_of

DOMAIN = pk.Domain(x=[(0.0, 2.0)], t=(-1.0, 1.0))
X, T = DOMAIN.coordinates()
HEAT = pk.D(T) - pk.Parameter("nu", 0.7, positive=True) * pk.Laplacian(X)
RNG = np.random.default_rng(0)
POINTS = RNG.uniform(DOMAIN.lower, DOMAIN.upper, size=(14, 2))
VALUES = np.sin(POINTS.sum(axis=1)) + 0.1 * RNG.normal(size=14)
OBSERVATIONS = (
    pk.Observation(pk.identity, POINTS[:6], VALUES[:6], name="u"),
    pk.Observation(HEAT, POINTS[6:], VALUES[6:], noise=pk.Learned("f", 0.2)),
)


def make_model(observations=OBSERVATIONS):
    network = pk.Residual(2, 2, width=4, depth=1, activation="square", key=jax.random.key(1))
    kernel = pk.deep(DOMAIN, network, pk.RationalQuadratic(2.0), variance=1.3, lengthscale=[0.8, 1.5])
    return pk.Model(kernel, observations, mean=pk.ConstantMean(0.3))


MODEL = make_model()
OBJECTIVE = Objective(MODEL, OBSERVATIONS)


def observe(values, name="u", operator=pk.identity, noise="learned"):
    return pk.Observation(operator, POINTS[: len(values)], values, noise, name)


# ── the vector ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_everything_is_trained_but_the_bounds_of_the_domain():
    marks = trainable(MODEL)
    (kernel,) = marks.kernel.components
    assert not any(jax.tree.leaves(kernel.normalisation))
    fixed = 2 + 2  # centre and scale of two coordinates
    sizes = [leaf.size for leaf, moves in zip(jax.tree.leaves(MODEL), jax.tree.leaves(marks)) if moves]
    assert sum(sizes) == sum(leaf.size for leaf in jax.tree.leaves(MODEL)) - fixed == OBJECTIVE.start().size
    assert kernel.base.profile.log_alpha and kernel.base.log_variance and kernel.log_lengthscale
    assert all(marks.log_noise.values()) and all(marks.coefficients.values()) and marks.mean.value


def test_weights_are_those_of_the_embeddings():
    weights = jax.tree.leaves(eqx.filter(MODEL, weights_of(MODEL)))
    embedding = MODEL.kernel.components[0].embedding
    assert sum(leaf.size for leaf in weights) == OBJECTIVE.weight_count
    assert OBJECTIVE.weight_count == sum(leaf.size for leaf in jax.tree.leaves(embedding))


def test_the_vector_and_back_gives_the_template():
    found = OBJECTIVE.model(OBJECTIVE.start())
    for name, level in MODEL.log_noise.items():  # the floor lies far below
        np.testing.assert_allclose(found.log_noise[name], level, atol=1e-3)
    same = eqx.tree_at(lambda m: m.log_noise, found, MODEL.log_noise)
    assert jax.tree.structure(same) == jax.tree.structure(MODEL)
    for a, b in zip(jax.tree.leaves(same), jax.tree.leaves(MODEL)):
        np.testing.assert_allclose(a, b, rtol=1e-15)


def test_every_entry_of_the_vector_moves_the_model():
    x = OBJECTIVE.start()
    flat = lambda x: np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(OBJECTIVE.model(x))])
    moved = [np.flatnonzero(flat(x + 0.1 * unit) != flat(x)) for unit in np.eye(x.size)]
    assert all(len(entries) == 1 for entries in moved)
    assert len({int(entries[0]) for entries in moved}) == x.size


# ── the parts of the objective ────────────────────────────────────────────────────────────────────────────────────


def test_the_value_is_evidence_and_priors():
    strength = 0.7
    objective = Objective(MODEL, OBSERVATIONS, prior_strength=strength)
    x = objective.start()
    value, _, jitter = value_and_gradient(objective, x)
    model = objective.model(x)
    layers = [model.kernel.components[0].embedding.linear, *model.kernel.components[0].embedding.network.layers]
    weights = sum(float(np.sum(layer.matrix**2) * layer.matrix.shape[1]) for layer in layers)
    weights += sum(float(np.sum(layer.offset**2)) for layer in layers if layer.offset is not None)
    kernel = 0.0
    for component in model.kernel.components:
        # One group of two latent coordinates: distances in it are about √2, and it has all of the variance.
        deviation = component.log_lengthscale - np.log(np.sqrt(2))
        kernel += float(np.sum(deviation**2)) / (2 * module.LOG_LENGTHSCALE_SPREAD**2)
        deviation = component.base.log_variance - np.log(signal_variance(OBSERVATIONS))
        kernel += float(np.sum(deviation**2)) / (2 * module.LOG_VARIANCE_SPREAD**2)
    scales = data_scales(OBSERVATIONS)
    for name, level in model.log_noise.items():
        deviation = float(level) - np.log(1e-3 * scales[name])
        kernel += deviation**2 / (2 * module.LOG_NOISE_SPREAD**2)
    evidence = float(pk.condition(model, OBSERVATIONS).objective)
    np.testing.assert_allclose(value, evidence + 0.5 * strength * weights + kernel, rtol=1e-12)
    assert jitter == 0


@pytest.mark.parametrize("d", [2, 10, 50])
def test_a_kernel_costs_the_same_in_any_number_of_inputs_before_anything_is_learned(d):
    """Parameters that the data say nothing about are at the centres of their priors, however many there are."""
    domain = pk.Domain(x=[(0, 1)] * d)
    points = np.random.default_rng(0).uniform(size=(6, d))
    data = [pk.Observation(pk.identity, points, VALUES[:6], noise=0.1)]
    kernel = starts.on_inputs(domain, signal_variance(data))

    def cost(kernel):
        objective = Objective(pk.Model(kernel, data), data)
        return float(objective._kernel_prior(objective.model(objective.start())))

    richer = kernel
    for build in (starts.on_each_input, starts.on_inputs):
        richer += build(domain, 1e-2 * signal_variance(data))
    # Two components start at four hundredths of the variance; the first at four times, with length scale √d.
    one = np.log(4.0) ** 2 / (2 * module.LOG_VARIANCE_SPREAD**2)
    small = np.log(0.04) ** 2 / (2 * module.LOG_VARIANCE_SPREAD**2)
    np.testing.assert_allclose([cost(kernel), cost(richer)], [one, one + 2 * small], rtol=1e-12)
    assert cost(richer) - cost(kernel) < 1.0


def test_groups_share_the_variance_and_unequal_ones_cost():
    """Four groups with a quarter of the variance each cost nothing; one of them smaller by `e⁴` costs for itself."""
    domain = pk.Domain(x=[(0, 1)] * 4)
    data = [pk.Observation(pk.identity, np.random.default_rng(0).uniform(size=(6, 4)), VALUES[:6], noise=0.1)]
    kernel = pk.additive(domain, variance=signal_variance(data) / 4)

    def cost(kernel):
        objective = Objective(pk.Model(kernel, data), data)
        return float(objective._kernel_prior(objective.model(objective.start())))

    assert cost(kernel) == pytest.approx(0.0, abs=1e-20)
    unequal = eqx.tree_at(lambda k: k.components[0].base.log_variance, kernel, replace_fn=lambda v: v.at[0].add(-4.0))
    # The mean falls by one; the deviations from it are -3, 1, 1, 1.
    assert cost(unequal) == pytest.approx((1 + 9 + 3) / (2 * module.LOG_VARIANCE_SPREAD**2))


def test_what_is_zero_everywhere_is_conditioned_on():
    """`p(y | y₀) = p(y, y₀) / p(y₀)`, so the smaller `u` the better is no longer the rule."""
    zero = eqx.tree_at(lambda o: o.values, OBSERVATIONS[1], np.zeros(len(OBSERVATIONS[1])))
    data = [OBSERVATIONS[0], zero, *OBSERVATIONS[2:]]
    objective = Objective(MODEL, data, prior_strength=0.0, kernel_priors=False)
    x = objective.start()
    model = objective.model(x)
    joint, alone = (float(pk.condition(model, part).objective) for part in (data, [zero]))
    np.testing.assert_allclose(value_and_gradient(objective, x)[0], joint - alone, rtol=1e-10)
    only = pk.Model(MODEL.kernel, [zero])
    assert Objective(only, [zero]).given == 0


def test_zeros_are_given_only_while_other_values_may_be_noise():
    """With a ceiling that is high, and with the final one: both against densities of all values and of zeros alone."""
    zero = pk.Observation(HEAT, POINTS[6:], np.zeros(8), noise=pk.Learned("f", 0.2))
    exact = pk.Observation(pk.identity, POINTS[:6], VALUES[:6], noise=pk.Learned("u", exact=True))
    data = [exact, zero]
    final = Objective(make_model(data), data, prior_strength=0.0, kernel_priors=False)
    high = final.eased(final.ceilings() + 5.0)
    assert (final.alike, final.given, high.given, final.eased(final.ceilings()).given) == (1, 0, 1, 0)
    x = final.start()
    for objective, of_zeros in ((final, 0.0), (high, 1.0)):
        model = objective.model(x)
        joint, alone = (float(pk.condition(model, part).objective) for part in (data, [zero]))
        np.testing.assert_allclose(value_and_gradient(objective, x)[0], joint - of_zeros * alone, rtol=1e-9)


def test_the_noise_of_zeros_has_a_ceiling():
    """Otherwise a kernel that cannot follow them takes them for noise, which costs nothing where they are given."""
    zero = eqx.tree_at(lambda o: o.values, OBSERVATIONS[0], np.zeros(len(OBSERVATIONS[0])))
    data = [zero, OBSERVATIONS[1]]
    most = NOISE_OF_EXACT * data_scales(data)["u"]
    levels = []
    for wanted in (-20.0, -5.0, 0.0, 20.0):
        objective = Objective(MODEL.with_noise(MODEL.log_noise | {"u": jnp.asarray(wanted)}), data)
        noise = objective.model(objective.start()).noise()
        levels.append(noise["u"])
        assert noise["f"] == pytest.approx(0.2, rel=1e-3)
    assert np.all(np.diff(levels) >= 0) and levels[0] < 0.01 * most
    np.testing.assert_allclose(levels[-1], most, rtol=1e-6)
    assert model_of(MODEL.kernel, data).noise()["u"] > most, "a start above the ceiling, which training lowers"
    assert not OBJECTIVE.noise_ceiling


def test_priors_of_the_kernel_can_be_left_out():
    objective = Objective(MODEL, OBSERVATIONS, kernel_priors=False)
    assert objective._kernel_prior(MODEL) == 0 < OBJECTIVE._kernel_prior(MODEL)


def test_the_gradient_agrees_with_differences():
    x = OBJECTIVE.start() + 0.1 * np.random.default_rng(3).normal(size=OBJECTIVE.start().size)
    _, gradient, _ = value_and_gradient(OBJECTIVE, x)
    step = 1e-5
    value = lambda y: float(value_and_gradient(OBJECTIVE, y)[0])
    differences = [(value(x + step * unit) - value(x - step * unit)) / (2 * step) for unit in np.eye(x.size)]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-6 * np.abs(gradient).max())


def test_noise_has_a_smooth_floor():
    scales = data_scales(OBSERVATIONS)
    for name in ("u", "f"):
        levels = []
        for wanted in (0.0, -10.0, -20.0, -100.0, -1e4):
            start = MODEL.with_noise(MODEL.log_noise | {name: jnp.asarray(wanted)})
            objective = Objective(start, OBSERVATIONS)
            levels.append(float(objective.model(objective.start()).log_noise[name]))
        assert abs(levels[0]) < 1e-4 and np.all(np.diff(levels) <= 0)
        np.testing.assert_allclose(levels[-2:], np.log(NOISE_FLOOR * scales[name]), rtol=1e-12)


# ── left-out values ───────────────────────────────────────────────────────────────────────────────────────────────


def without(index):
    """All observations but one value, and that value's own operator, point and value."""
    first = len(OBSERVATIONS[0])
    which, i = (0, index) if index < first else (1, index - first)
    item = OBSERVATIONS[which]
    keep = np.arange(len(item)) != i
    rest = eqx.tree_at(lambda o: (o.points, o.values), item, (item.points[keep], item.values[keep]))
    return [rest if o is item else o for o in OBSERVATIONS], (item.operator, item.points[i : i + 1], item.values[i])


def test_left_out_errors_are_those_of_leaving_out():
    errors, left = map(np.concatenate, zip(*left_out_rows(OBJECTIVE, OBJECTIVE.start())))
    assert errors.shape == left.shape == (14,)
    model = OBJECTIVE.model(OBJECTIVE.start())
    for index in (0, 5, 6, 13):
        rest, (operator, point, value) = without(index)
        after = pk.condition(model, rest).predict(np.asarray(point), operator)
        far = eqx.tree_at(lambda o: o.points, rest[0], rest[0].points + 1e6)
        before = pk.condition(model, [far]).predict(np.asarray(point), operator)
        np.testing.assert_allclose(errors[index], value - after.mean[0], rtol=1e-8)
        np.testing.assert_allclose(left[index], after.variance[0] / before.variance[0], rtol=1e-5)


def test_values_that_a_kernel_knows_by_itself_leave_nothing():
    walls = pk.Observation(pk.identity, [[0.0, 0.3], [2.0, 0.6]], [0.0, 0.0], 1e-3)
    inside = pk.Observation(pk.Laplacian(X), [[0.4, 0.3], [1.5, 0.6], [0.8, 0.9]], [0.0, 0.0, 0.0], 1e-3)
    kernel = pk.ard(DOMAIN).times(vanishing(DOMAIN, DOMAIN.boundary(X).pieces))
    objective = Objective(pk.Model(kernel, [walls, inside]), [walls, inside])
    (_, of_walls), (_, of_inside) = left_out_rows(objective, objective.start())
    assert np.all(of_walls == 0) and np.all((of_inside > 0) & (of_inside < 1))


def test_the_left_out_error_is_relative_and_the_largest():
    rows, scales = left_out_rows(OBJECTIVE, OBJECTIVE.start()), data_scales(OBSERVATIONS)
    sizes = [np.sqrt(np.mean(part**2)) / scales[name] for (part, _), name in zip(rows, ("u", "f"))]
    np.testing.assert_allclose(largest_error(left_out(OBJECTIVE, OBJECTIVE.start())), max(sizes), rtol=1e-12)
