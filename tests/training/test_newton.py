"""Nonlinear equations by Newton's method."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.inference.linearising import linear_at, values_of, zeros
from pdedkl.training.journal import Journal
from pdedkl.training.monitor import Monitor
from pdedkl.training.newton import Newton
from pdedkl.training.phases import Trainer

LINE = pk.Domain(x=(0, 1))
(X,) = LINE.coordinates()
U = pk.fields("u")
EXACT = lambda q: jnp.sin(3 * q[0]) + 0.5 * q[0] ** 2
D2 = lambda q: -9 * jnp.sin(3 * q[0]) + 1.0
WALLS = pk.Dirichlet(U, on=LINE.boundary(X), value=EXACT)


def problem(equation, **more):
    return pk.Problem(LINE, equations=[equation], conditions=[WALLS], exact=EXACT, **more)


def cubic(**more):
    return problem(-(pk.D(X, X) @ U) + U**3 == (lambda q: -D2(q) + EXACT(q) ** 3), **more)


def fitted(problem, n=25, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pk.fit(problem, problem.sample(source=n, boundary=2), model="gp", progress=False, **more)


def error_of(posterior, problem):
    at = problem.interior(200)
    return float(np.sqrt(np.mean((posterior.predict(at).mean - problem.truth(at)) ** 2)))


def newton(data):
    return Newton(LINE, data, Trainer(Journal(None, ""), Monitor()))


@pytest.fixture(scope="module")
def alone():
    """The cubic equation, solved, and how many steps its callbacks saw."""
    seen = []
    return fitted(cubic(), callbacks=[seen.append]), len(seen)


def test_a_cubic_equation_is_solved(alone):
    stated, (posterior, _) = cubic(), alone
    assert stated.verify(n=20).ok and stated.equation == "-∂²u/∂x² + u³ = f"
    assert error_of(posterior, stated) < 1e-5
    at = stated.interior(5)
    np.testing.assert_allclose(posterior.predict(at, U).mean, posterior.predict(at).mean)
    np.testing.assert_allclose(posterior.predict(at, pk.D(X) @ U).mean, stated.truth(at, pk.D(X)), atol=1e-3)
    with pytest.raises(ValueError, match="the field w, which is not known here: there is u"):
        posterior.predict(at, pk.fields("w"))
    assert posterior.verdict.status == "calibrated"
    steps = posterior.training.iterations
    assert len(steps) <= 10 and steps[-1].residual < 1e-5
    # What is compared is the residual of the equation itself.
    fresh = stated.fresh(50, purpose="check")[-1]
    claimed = next(c for c in posterior.verdict.comparisons if c.name == str(fresh.operator))
    assert claimed.error < 1e-3


def test_a_linear_equation_written_as_a_nonlinear_one_has_the_linear_result():
    right = lambda q: -D2(q) + 2 * EXACT(q) + 1
    odd = problem(-(pk.D(X, X) @ U) + (U + 1) ** 2 - U**2 == right)
    plain = pk.Problem(
        LINE, -pk.D(X, X) + 2.0, lambda q: right(q) - 1, [pk.Dirichlet(on=LINE.boundary(X), value=EXACT)]
    )
    data, linear = odd.sample(source=15, boundary=2), plain.sample(source=15, boundary=2)
    model = pk.Model(pk.ard(LINE, lengthscale=0.8), linear_at(newton(data).data, zeros(data)))
    found = newton(data).converge(model, zeros(data)).posterior
    wanted = pk.condition(pk.Model(pk.ard(LINE, lengthscale=0.8), newton(linear).data), newton(linear).data)
    at = odd.interior(20)
    np.testing.assert_allclose(found.predict(at).mean, wanted.predict(at).mean, rtol=1e-7)
    np.testing.assert_allclose(found.predict(at).variance, wanted.predict(at).variance, rtol=1e-5)


def test_rows_are_linearised_where_the_mean_is():
    """At the posterior mean `m` a linearised row has the residual `f − F(m)`."""
    stated = cubic()
    data = stated.sample(source=9, boundary=2)
    model = pk.Model(pk.ard(LINE, lengthscale=0.8), linear_at(newton(data).data, zeros(data)))
    posterior = newton(data).looks(zeros(data)).posterior
    fresh = stated.fresh(5)
    linear = linear_at(fresh, values_of(posterior, fresh))
    for item, row in zip(fresh, linear):
        exact = np.asarray(item.values) - np.asarray(
            [item.operator(posterior.mean)(q) for q in jnp.asarray(item.points)]
        )
        found = np.asarray(row.values) - posterior.predict(item.points, row.operator).mean
        np.testing.assert_allclose(found, exact, atol=1e-6 * np.max(np.abs(item.values)))
    assert model.log_noise.keys() == posterior.model.log_noise.keys()


def test_numbers_are_continued():
    nu = pk.Number("nu", 0.1)
    front = lambda q: jnp.tanh((q[0] - 0.5) / (2 * 0.1))
    burgers = pk.Problem(
        LINE,
        equations=[U * (pk.D(X) @ U) + nu * (pk.D(X, X) @ U) == 0],
        conditions=[pk.Dirichlet(U, on=LINE.boundary(X), value=front)],
        exact=front,
    )
    assert burgers.verify(n=20).ok
    posterior = fitted(burgers, 30, continuation={"nu": [0.4, 0.1]})
    assert error_of(posterior, burgers) < 5e-3
    again = fitted(burgers, 30, start=posterior)
    assert error_of(again, burgers) < 5e-3
    with pytest.raises(ValueError, match="got 'mu', there are nu"):
        fitted(burgers, continuation={"mu": [1.0]})


def test_a_problem_without_a_solution_ends_with_the_best_iterate():
    """`u² = −1`: Newton's method jumps about for ever."""
    stated = problem(U**2 + 1e-6 * (pk.D(X, X) @ U) == -1, silenced=["exact"])
    posterior = fitted(stated, 6, profile=pk.SquaredExponential())
    assert posterior.verdict.status == "did not converge" and np.isnan(posterior.verdict.error_u)
    assert "did not converge" in posterior.verdict.reasons[0]
    assert posterior.check(stated, n=20).status == "did not converge"
    assert np.all(np.isfinite(posterior.predict(stated.interior(5)).mean))


def test_a_step_to_numbers_without_bounds_is_shortened():
    """`e⁹⁰⁰` is no number: on the way from zero the equation can be evaluated only nearby."""
    stated = problem(pk.D(X, X) @ U - 1e3 * pk.exp(U) == 0, silenced=["exact"])
    made = newton(stated.sample(source=6, boundary=2))
    far = pk.Observation(pk.identity, np.linspace(0, 1, 6)[:, None], np.full(6, 900.0), "exact")
    found = made.step("far", zeros(made.data), pk.Model(pk.ard(LINE), far), (far,))
    assert found is not None and np.isfinite(found.residual)
    assert made.history[0].step <= 1 / 8


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        (lambda: fitted(cubic(), start=lambda q: jnp.nan * q[0]), "`start` needs a function that is finite"),
        (lambda: fitted(cubic(), continuation={"nu": [1.0]}), "there are none"),
        (lambda: fitted(cubic(), validation=cubic().fresh(5)), "no `validation`"),
        (lambda: problem((pk.D(X) @ U) * 0 + 1 == 2), "needs an unknown field"),
        (lambda: pk.Problem(LINE, equations=[], conditions=[WALLS]), "operator with its source, or equations"),
        (lambda: pk.Problem(LINE, equations=[U], conditions=[WALLS]), "written as term == source"),
        (lambda: pk.Problem(LINE, pk.D(X), 0.0, [WALLS], equations=[U == 0]), "Give either an operator"),
        (lambda: pk.condition(pk.ard(LINE), cubic().sample(source=5, boundary=2)), "is not linear in its fields"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(wrong, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        wrong()


def test_a_nonlinear_problem_is_solved_without_a_number_of_points():
    """No network is tried, and rounds go on from the posterior before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = pk.solve(cubic(), accuracy=1e-3, seconds=60, progress=False)
    assert posterior.training.rounds[-1].values == sum(map(len, posterior.observations))
    assert error_of(posterior, cubic()) < 1e-3


def test_one_equation_needs_no_list():
    assert cubic().equation == problem(cubic().equations[0]).equation
    alone = pk.Problem(LINE, equations=pk.D(X, X) @ U + U**3 == 1.0, conditions=[WALLS])
    assert len(alone.equations) == 1 and alone.fields == ("u",)


def test_a_start_where_the_equation_has_no_value_is_refused():
    low = pk.Dirichlet(U, on=LINE.boundary(X), value=-1.0)
    rooted = pk.Problem(LINE, equations=[pk.D(X, X) @ U + pk.sqrt(U) == 1.0], conditions=[low])
    data = rooted.sample(source=5, boundary=2)
    with pytest.raises(ValueError, match=r"u = 0 by default: give start=function"):
        pk.fit(rooted, data, progress=False)
    with pytest.raises(TypeError, match="not a kernel"):
        pk.fit(rooted, data, start=pk.ard(LINE), progress=False)


def test_a_callback_ends_newtons_method_as_well():
    calls = []

    def enough(step):
        calls.append(step)
        return len(calls) > 2

    posterior = fitted(cubic(), callbacks=[enough])
    # A model has to be trained for a step, so that there is one; linearisations are shown as steps too.
    assert 3 <= len(calls) < 6 and posterior.training.stopped == "a callback asked for it"


@pytest.mark.parametrize("part", [0.05, 0.6])
def test_a_stopped_run_goes_on_to_the_same_bits(alone, part, tmp_path):
    """While it looks, and while it trains on the linearisation that was found."""
    expected, steps = alone
    left = [max(1, int(part * steps))]

    def stop(_):
        left[0] -= 1
        return left[0] == 0

    checkpoint = tmp_path / "run.npz"
    assert fitted(cubic(), checkpoint=checkpoint, checkpoint_every=0.0, callbacks=[stop]).training.stopped
    found = fitted(cubic(), checkpoint=checkpoint)
    for one, other in zip(jax.tree.leaves(found.model), jax.tree.leaves(expected.model), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(found.alpha, expected.alpha)
    assert found.training.stopped is None and found.training.iterations == expected.training.iterations
    assert {file.name.split(".training-")[0] for file in tmp_path.iterdir()} == {"run.npz"}
    with pytest.raises(ValueError, match="belongs to another run"):
        fitted(cubic(), n=24, checkpoint=checkpoint)


def test_no_network_is_tried_for_a_nonlinear_equation():
    from pdedkl.training import networks

    assert not networks.applies(cubic(), ())


def test_values_that_are_far_off_count_less():
    """Sensors in place of conditions, two of them wrong: the weights of the training are those of the posterior."""
    places = np.linspace(0.02, 0.98, 15)[:, None]
    values = np.array([float(EXACT(q)) for q in places]) + 1e-3 * np.random.default_rng(0).normal(size=15)
    values[[4, 11]] += (2.0, -3.0)
    stated = pk.Problem(
        LINE,
        equations=[-(pk.D(X, X) @ U) + U**3 == (lambda q: -D2(q) + EXACT(q) ** 3)],
        conditions=[pk.Sensors(U, places, values, noise="robust")],
        exact=EXACT,
        silenced=["exact"],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = pk.fit(stated, stated.sample(source=20), model="gp", progress=False)
    assert error_of(posterior, stated) < 5e-3
    weights = np.asarray(next(item.weights for item in posterior.observations if item.weights is not None))
    assert set(np.flatnonzero(weights < 0.05)) == {4, 11}


def test_a_solution_that_is_zero_has_converged_and_has_no_infinite_errors():
    stated = pk.Problem(
        LINE,
        equations=[-(pk.D(X, X) @ U) + U**3 == 0],
        conditions=[pk.Dirichlet(U, on=LINE.boundary(X), value=0.0)],
    )
    posterior = fitted(stated, 10, start=lambda q: 0.3 * jnp.sin(jnp.pi * q[0]))
    assert "did not converge" not in " ".join(posterior.verdict.reasons)
    assert np.max(np.abs(posterior.predict(stated.interior(20)).mean)) < 1e-3
    assert np.isfinite(posterior.verdict.error_u) and posterior.training.iterations[-1].change < 1e-3


def test_a_posterior_is_checked_against_the_equation_itself(alone):
    stated, (posterior, _) = cubic(), alone
    verdict = posterior.check(stated, n=50)
    assert verdict.status == posterior.verdict.status
    assert {c.name for c in verdict.comparisons} >= {"-∂²u/∂x² + u³"}
    with pytest.raises(ValueError, match="give the problem that was solved"):
        posterior.check(problem(-(pk.D(X, X) @ U) + U**5 == 0, silenced=["exact"]))
