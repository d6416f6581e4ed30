"""The check that needs no solution, and points where the posterior is least sure."""

from __future__ import annotations

import dataclasses
import json

import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.checking.refine import greedy


def problem():
    domain = pk.Domain(x=[(0, 1)] * 2)
    x = domain.coordinates("x")
    exact = lambda q: jnp.sin(3 * q[0]) * jnp.exp(q[1])
    return pk.Problem(
        domain=domain,
        operator=pk.Laplacian(x),
        source=lambda q: -8 * exact(q),
        conditions=[pk.Dirichlet(on=domain.boundary(x), value=exact)],
        exact=exact,
        points=pk.Points(boundary=20, source=20),
    )


PROBLEM = problem()


def conditioned(noise=0.0, level=1e-4, **counts):
    data = PROBLEM.sample(seed=1, noise=noise, **counts)
    known = [
        pk.Observation(o.operator, o.points, o.values, (level if o.of_values else 1e-4) * float(np.std(o.values)))
        for o in data
    ]
    posterior = pk.condition(pk.ard(PROBLEM.domain, variance=4.0, lengthscale=1.0), known)
    return posterior.calibrated(PROBLEM.fresh(500, purpose="calibration"))


def test_a_calibrated_posterior_is_found_calibrated_and_its_error_estimated():
    posterior = conditioned()
    verdict = posterior.check(PROBLEM)
    assert verdict.calibrated
    q = PROBLEM.interior(500, seed=9)
    truth = PROBLEM.truth(q)
    error = np.linalg.norm(posterior.predict(q).mean - truth) / np.linalg.norm(truth)
    assert error / 3 < verdict.error_u < 3 * error
    assert verdict.compared_with == "fresh values"


@pytest.mark.parametrize("factor", (0.1, 10.0))
def test_error_bars_that_are_off_are_found(factor):
    posterior = conditioned()
    wrong = dataclasses.replace(posterior.calibration, factors=factor * posterior.calibration.factors)
    verdict = dataclasses.replace(posterior, calibration=wrong).check(PROBLEM)
    assert verdict.status == "not calibrated"
    inside = verdict.comparisons[0]
    assert inside.name == "u inside" and (inside.too_wide if factor > 1 else inside.too_narrow)


def test_noise_and_lack_of_points_are_told_apart():
    few = conditioned(boundary=8, source=6).check(PROBLEM)
    assert few.ruled_by in ("points", "model")
    posterior = conditioned(noise=0.1, level=0.1, boundary=100, source=60)
    assert posterior.check(PROBLEM).ruled_by == "noise"


def test_fresh_values_are_exact_whatever_noise_a_condition_states():
    stated = pk.Problem(
        domain=PROBLEM.domain,
        operator=PROBLEM.operator,
        source=PROBLEM.source,
        conditions=[
            pk.Dirichlet(on=PROBLEM.domain.boundary(PROBLEM.domain.coordinates("x")), value=PROBLEM.exact, noise=0.1)
        ],
    )
    for purpose in ("calibration", "check"):
        assert all(float(np.max(item.noise)) == 0 for item in stated.fresh(5, purpose=purpose))
    posterior = conditioned()
    again = posterior.calibrated(stated.fresh(500, purpose="calibration"))
    np.testing.assert_allclose(again.calibration.factors, posterior.calibration.factors, rtol=1e-12)


def test_the_worst_place_is_the_worst_of_the_fresh_values():
    posterior = conditioned()
    verdict = posterior.check(PROBLEM, n=50, seed=3)
    inside, *compared = verdict.comparisons
    assert inside.name == "u inside" and len(inside.worst) == PROBLEM.domain.dim
    for item, fresh in zip(compared, PROBLEM.fresh(50, seed=3, purpose="check"), strict=True):
        errors = np.abs(np.asarray(fresh.values) - posterior.predict(fresh.points, fresh.operator).mean)
        np.testing.assert_array_equal(item.worst, np.asarray(fresh.points)[np.argmax(errors)])
        assert item.worst_error == pytest.approx(np.max(errors) / item.size)


def test_a_verdict_reads_as_text_and_as_json():
    verdict = conditioned().check(PROBLEM, n=50)
    text = str(verdict)
    assert text.startswith("Calibrated" if verdict.calibrated else "Not calibrated")
    assert verdict.advice in text and "worst" in text
    again = json.loads(json.dumps(verdict.to_json()))
    assert again["calibrated"] == verdict.calibrated
    assert [row["name"] for row in again["comparisons"]][:2] == ["u inside", "u"] and len(again["comparisons"]) == 3


def test_purposes_share_no_points():
    drawn = [PROBLEM.fresh(20, purpose=name) for name in ("validation", "calibration", "check", "refinement")]
    points = np.concatenate([np.asarray(item.points) for observations in drawn for item in observations])
    assert len(np.unique(points, axis=0)) == len(points)
    with pytest.raises(ValueError, match="purpose"):
        PROBLEM.fresh(5, purpose="luck")


def test_refined_points_leave_less_variance_than_random_ones():
    posterior = conditioned(boundary=8, source=6)
    q = PROBLEM.interior(300, seed=2)

    def left(extra):
        known = [pk.Observation(o.operator, o.points, o.values, 1e-3) for o in extra]
        return np.mean(pk.condition(posterior.model, [*posterior.observations, *known]).predict(q).variance)

    chosen = PROBLEM.refine(posterior, 12)
    assert sum(map(len, chosen)) == 12
    random = [left(PROBLEM.sample(boundary=6, source=6, seed=seed)) for seed in range(10, 15)]
    assert left(chosen) < 0.7 * np.median(random)


def test_chosen_points_are_those_that_conditioning_favours():
    """The greedy choice, against conditioning on each candidate in turn."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(30, 40))
    joint = root @ root.T
    with_u, among, noise = joint[:10, 10:], joint[10:, 10:], rng.uniform(0.1, 2.0, 20)
    chosen: list[int] = []
    for _ in range(4):

        def left(j, chosen=chosen):
            kept = [*chosen, j]
            solved = np.linalg.solve(among[np.ix_(kept, kept)] + np.diag(noise[kept]), with_u[:, kept].T)
            return np.trace(joint[:10, :10] - with_u[:, kept] @ solved)

        chosen.append(min((j for j in range(20) if j not in chosen), key=left))
    np.testing.assert_array_equal(greedy(with_u, among, noise, 4), chosen)
