"""Problems: what is sampled from them, how it is merged, what verification finds, what is refused."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk

# Many problems here lack conditions on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::pdedkl.problems.ProblemWarning")

DOMAIN = pk.Domain(x=[(0, 1)] * 2, t=(0, 1))
X, T = DOMAIN.coordinates()
HEAT = pk.D(T) - pk.Laplacian(X)
OTHER = pk.Domain(y=[(0, 1)] * 3)
Y = OTHER.coordinates("y")


def exact(q):
    return jnp.exp(-T(q)) * jnp.cos(X(q)[0] + 2 * X(q)[1])


def source(q):
    return 4 * exact(q)


WALL = pk.Dirichlet(on=DOMAIN.boundary(X), value=exact)
START = pk.Initial(T, value=exact)


def problem(**changes):
    given = {"domain": DOMAIN, "operator": HEAT, "source": source, "conditions": [WALL, START], "exact": exact}
    return pk.Problem(**given | changes)


@pytest.fixture(scope="module")
def heat():
    return problem()


# ── sampling ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_all_values_of_u_are_one_observation_and_the_source_another(heat):
    of_u, of_f = heat.sample(source=30, boundary=20, initial=10, seed=3)
    assert of_u.operator is pk.identity and len(of_u) == 30 and of_u.noise == pk.Learned(exact=True)
    assert of_f.operator is HEAT and len(of_f) == 30
    np.testing.assert_array_equal(of_u.points[20:, 2], 0)
    np.testing.assert_allclose(of_u.values, heat.truth(of_u.points), rtol=1e-14)
    np.testing.assert_allclose(of_f.values, heat.truth(of_f.points, HEAT), rtol=1e-12)


def test_a_seed_gives_the_same_points_and_another_gives_others(heat):
    first, again, other = (heat.sample(20, 20, 20, seed=seed)[0].points for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.any(np.all(np.isclose(first, other), axis=1))
    more = heat.sample(500, 20, 20, seed=0)[0].points  # more points inside leave those on the boundary
    np.testing.assert_array_equal(first, more)


def test_fresh_points_are_new(heat):
    old = np.concatenate([o.points for o in heat.sample(50, 50, 50, seed=0)])
    fresh = heat.fresh(50, seed=0)
    new = np.concatenate([*(o.points for o in fresh), heat.interior(50, seed=0)])
    assert [len(o) for o in fresh] == [100, 50] and len(new) == 200
    distances = np.linalg.norm(old[:, None] - new[None], axis=2)
    assert distances.min() > 0


def test_noise_is_relative_to_the_spread_of_u_and_on_u_alone(heat):
    clean, noisy = (heat.sample(20, 1500, 500, noise=noise) for noise in (0.0, 0.2))
    change = np.asarray(noisy[0].values - clean[0].values)
    assert change.std() == pytest.approx(0.2 * float(np.std(clean[0].values)), rel=0.05)
    assert abs(change.mean()) < 3 * change.std() / np.sqrt(2000)
    np.testing.assert_array_equal(noisy[1].values, clean[1].values)
    np.testing.assert_array_equal(noisy[0].values, heat.sample(20, 1500, 500, noise=0.2)[0].values)


def test_conditions_with_a_noise_of_their_own_stay_apart():
    points = np.full((5, 3), 0.5)  # fewer measured values than five count as exact: noise cannot be told from them
    conditions = [
        pk.Dirichlet(DOMAIN.face(X[0], "lower"), exact),
        pk.Dirichlet(DOMAIN.face(X[0], "upper"), exact, noise="exact"),
        pk.Dirichlet(DOMAIN.face(X[1], "lower"), exact, noise=0.1),
        pk.Dirichlet(DOMAIN.face(X[1], "upper"), exact, noise="learned"),
        pk.Initial(T, exact),
        pk.Sensors(points, np.arange(5.0)),
        pk.Sensors(points, np.ones(5)),
        pk.Sensors(points[:2], [3.0, 4.0], operator=pk.D(T), noise=[0.1, 0.2]),
        pk.Sensors(points[:2], [3.0, 4.0]),
    ]
    data = problem(conditions=conditions).sample(source=10, boundary=8, initial=3, noise=0.1)
    assert [len(o) for o in data] == [5, 2, 2, 2, 5, 5, 2, 2, 10]
    levels = [o.noise_name for o in data]
    assert levels[1:3] == [None, None] and levels[6] is None
    assert len({levels[0], levels[3], levels[4], levels[5], levels[8]}) == 5
    assert levels[7] is None and float(data[7].noise) == 0, "noise cannot be learned from two values"
    assert float(data[1].noise) == 0 and float(data[2].noise) == 0.1
    # Noise is added where it is to be learned, not to what is exact and not to measurements.
    np.testing.assert_allclose(data[1].values, problem().truth(data[1].points), rtol=1e-14)
    np.testing.assert_array_equal(data[4].values, np.arange(5))
    assert np.abs(data[0].values - problem().truth(data[0].points)).max() > 1e-3


def test_points_of_your_own_stand_for_a_region():
    points = np.array([[0.0, 0.3, 0.5], [1.0, 0.2, 0.1]])
    (of_u, _) = problem(conditions=[pk.Dirichlet(points, [1.0, 2.0]), START]).sample(source=5, initial=3)
    np.testing.assert_array_equal(of_u.points[:2], points)
    np.testing.assert_array_equal(of_u.values[:2], [1, 2])
    (of_u, _) = problem(conditions=[pk.Dirichlet(points, exact), START]).sample(source=5, initial=3)
    np.testing.assert_allclose(of_u.values[:2], problem().truth(points))


def test_numbers_of_points_are_sensible_by_default(heat):
    assert heat.points == pk.Points(boundary=80, initial=40, source=120)
    assert [len(o) for o in heat.sample()] == [120, 120]
    steady = pk.Problem(OTHER, pk.Laplacian(Y), 0.0, [pk.Dirichlet(OTHER.boundary(Y), 0.0)])
    assert steady.points == pk.Points(boundary=60, source=60)
    assert problem(points=pk.Points(boundary=3, initial=2, source=1)).sample()[1].points.shape == (1, 3)


def test_an_ordinary_differential_equation_and_one_that_runs_backwards():
    domain = pk.Domain(t=(0, 2))
    t = domain.coordinates("t")
    for condition, start in ((pk.Initial(t, 1.0), 0.0), (pk.Dirichlet(domain.final(t), 1.0), 2.0)):
        decay = pk.Problem(domain, pk.D(t) + 1.0, 0.0, [condition], exact=lambda q, s=start: jnp.exp(s - t(q)))
        assert decay.verify().ok
        data = decay.sample(source=20)
        assert [len(o) for o in data] == [1, 20]
        posterior = pk.condition(pk.ard(domain), [pk.Observation(o.operator, o.points, o.values, 1e-6) for o in data])
        new = decay.interior(50)
        np.testing.assert_allclose(posterior.predict(new).mean, decay.truth(new), atol=1e-4)


def test_a_wave_equation_has_two_initial_conditions():
    wave = problem(
        operator=pk.D(T, T) - pk.Laplacian(X),
        source=0.0,
        conditions=[WALL, pk.Initial(T, lambda q: jnp.sin(X(q)[0])), pk.Initial(T, 0.0, operator=pk.D(T))],
        exact=lambda q: jnp.sin(X(q)[0]) * jnp.cos(T(q)),
    )
    assert [check.ok for check in wave.verify().checks] == [True, False, True, True]
    assert [len(o) for o in wave.sample(source=5, boundary=5, initial=10)] == [10, 5, 5]


# ── verification ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_problem_that_fits_is_confirmed(heat):
    found = heat.verify()
    assert found.ok and bool(found) and len(found.checks) == 3
    assert "fits its exact solution" in str(found) and "initial condition on the face t = 0" in str(found)
    found.raise_if_wrong()


def test_a_wrong_source_is_found_with_its_worst_point():
    """The mistake grows with t, so the worst point is the latest one."""
    wrong = problem(source=lambda q: source(q) + 1e-3 * T(q)).verify(n=100)
    assert not wrong.ok and [check.ok for check in wrong.checks] == [False, True, True]
    check = wrong.checks[0]
    assert check.what == "source" and check.point[2] > 0.9
    assert check.stated - check.exact == pytest.approx(1e-3 * check.point[2], rel=1e-6)
    with pytest.raises(ValueError, match=r"does not fit its exact solution:\n  NO source: at q = \(.* it says"):
        wrong.raise_if_wrong()


def test_a_wrong_condition_and_one_that_is_no_number_are_found():
    wrong = problem(
        conditions=[
            pk.Dirichlet(DOMAIN.face(X[0], "lower"), exact),
            pk.Neumann(DOMAIN.face(X[0], "upper"), lambda q: jnp.exp(-T(q)) * jnp.sin(1 + 2 * X(q)[1])),  # the sign
            pk.Initial(T, lambda q: jnp.log(X(q)[0] - 0.5)),
            pk.Sensors([[0.5, 0.5, 0.5]], [1.0], noise=0.01),
            pk.Sensors([[0.5, 0.5, 0.5]], [1.0]),
        ]
    ).verify()
    assert [check.ok for check in wrong.checks] == [True, True, False, False, False, True]
    assert "not checked, measured with noise" in str(wrong)
    assert np.isnan(wrong.checks[3].stated) and "it says nan" in str(wrong)


def test_harmonic_functions_leave_rounding_and_no_mistake():
    domain = pk.Domain(x=[(0, 1)] * 2)
    x = domain.coordinates("x")
    u = lambda q: jnp.exp(5 * q[0]) * jnp.sin(5 * q[1])
    assert pk.Problem(domain, pk.Laplacian(x), 0.0, [pk.Dirichlet(domain.boundary(x), u)], exact=u).verify().ok


def test_zero_on_a_face_is_zero_up_to_rounding():
    domain = pk.Domain(x=[(0, 1)] * 2)
    x = domain.coordinates("x")
    u = lambda q: jnp.sin(jnp.pi * q[0]) * jnp.sin(2 * jnp.pi * q[1])
    conditions = [pk.Dirichlet(domain.boundary(x[0]), 0.0), pk.Dirichlet(domain.boundary(x[1]), 1e-6)]
    found = pk.Problem(domain, pk.Laplacian(x), lambda q: -5 * jnp.pi**2 * u(q), conditions, exact=u).verify()
    assert [check.ok for check in found.checks] == [True, True, False]


def test_without_an_exact_solution_there_is_nothing_to_verify_with():
    with pytest.raises(ValueError, match="has no exact solution"):
        problem(exact=None).verify()


# ── bad input ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"conditions": []}, "at least one condition"),
        ({"conditions": [exact]}, r"`conditions` takes Dirichlet"),
        ({"operator": exact}, "`operator` needs to be an operator"),
        ({"operator": pk.Laplacian(Y)}, "another domain"),
        ({"operator": pk.Coefficient(lambda q: q) * pk.D(T)}, "`operator` could not be evaluated"),
        ({"domain": [(0, 1)]}, "`domain` needs to be a Domain"),
        ({"source": "x"}, "The source needs a function of the point q, or a number"),
        ({"source": np.inf}, "The source needs a finite number"),
        ({"source": lambda q: q}, r"The source needs one real number .* returned shape \(3,\)"),
        ({"source": lambda q: np.sin(q[0])}, r"could not be evaluated .*Write it as a function of one point, with jax"),
        ({"source": lambda q, r: 0.0}, "could not be evaluated .*TypeError"),
        ({"exact": lambda q: X(q)}, "The exact solution needs one real number"),
        ({"points": (1, 2, 3)}, r"`points` needs Points\("),
        ({"conditions": [START], "points": pk.Points(boundary=5)}, "no condition is sampled there"),
        ({"conditions": [pk.Dirichlet(OTHER.boundary(Y), 0.0)]}, "Dirichlet condition is on .* of another domain"),
        ({"conditions": [pk.Initial(Y[0], 0.0)]}, r"y\[0\] belongs to another domain"),
        ({"conditions": [pk.Dirichlet(X, 0.0)]}, r"needs a region such as domain.boundary\(x\)"),
        ({"conditions": [pk.Dirichlet(DOMAIN.boundary(X), lambda q: X(q))]}, r"Dirichlet .* returned shape \(2,\)"),
        ({"conditions": [pk.Dirichlet([[0.5, 0.5]], 0.0)]}, r"points of shape \(n, 3\)"),
        ({"conditions": [pk.Dirichlet([[2.0, 0.5, 0.5]], 0.0)]}, r"outside the domain.*points\[0\]"),
        ({"conditions": [pk.Dirichlet([[0.5, 0.5, 0.5]], [1.0, 2.0])]}, "one value for each of its 1 points"),
        ({"conditions": [pk.Dirichlet(DOMAIN.boundary(X), 0.0, noise=-1)]}, "Dirichlet .* none negative"),
        ({"conditions": [pk.Dirichlet(DOMAIN.boundary(X), 0.0, noise=[1.0, 2.0])]}, "its noise is one number"),
        ({"conditions": [pk.Sensors([[0.5, 0.5, 0.5]], [np.nan])]}, "finite"),
        ({"conditions": [pk.Robin(DOMAIN.boundary(X), 0.0, a=lambda q: q)]}, r"Robin .* returned shape \(3,\)"),
        ({"conditions": [pk.Initial(T, 0.0, operator=exact)]}, "needs an operator such as"),
    ],
)
def test_a_bad_problem_is_refused_where_it_is_made(changes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        problem(**changes)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"sampler": "sobel"}, r"Unknown sampler 'sobel': .* Did you mean 'sobol'\?"),
        ({"boundary": -1}, "`boundary` needs a whole number that is not negative: got -1"),
        ({"source": 2.5}, "`source` needs a whole number"),
        ({"seed": -3}, "`seed` needs a whole number"),
        ({"noise": -0.1}, "`noise` needs a finite number"),
        ({"noise": "5 %"}, "`noise` needs a finite number"),
        ({"source": 0, "boundary": 0, "initial": 0}, "nothing to observe"),
    ],
)
def test_bad_arguments_of_sample_are_refused(heat, arguments, message):
    with pytest.raises(ValueError, match=message):
        heat.sample(**arguments)


def test_points_that_nothing_or_too_much_takes_are_refused():
    with pytest.raises(ValueError, match="no condition of problem is sampled there"):
        problem(conditions=[WALL]).sample(initial=5)
    faces = [pk.Dirichlet(DOMAIN.face(x, side), 0.0) for x in X for side in ("lower", "upper")]
    with pytest.raises(ValueError, match="`boundary=3` is too few for 4 conditions"):
        problem(conditions=faces).sample(boundary=3)
    with pytest.raises(ValueError, match="relative to the spread of the values of u, and they have none"):
        problem(conditions=faces).sample(noise=0.1)


def test_values_that_are_not_finite_name_their_point():
    with pytest.raises(ValueError, match=r"The source needs finite values: it is inf at q = \("):
        problem(source=lambda q: jnp.inf * X(q)[0]).sample()
