"""Bad input is refused where it is given, before anything is compiled, with a message that says what came."""

from __future__ import annotations

import re
from functools import partial

import equinox as eqx
import jax
import numpy as np
import pytest

import pdedkl as pk

DOMAIN = pk.Domain(x=[(0, 1)] * 2, t=(0, 1))
X, T = DOMAIN.coordinates()
OTHER = pk.Domain(y=[(0, 1)] * 4)
Y = OTHER.coordinates("y")
KERNEL = pk.ard(DOMAIN)
ROUGH = pk.ard(DOMAIN, pk.Matern52())
THIRD = pk.D(X[0], X[0], T)
IDENTITY = pk.IdentityEmbedding()
POINTS = np.random.default_rng(0).uniform(size=(5, 3))
VALUES = np.arange(5.0)
KEY = jax.random.key(0)
UNKNOWN = pk.Parameter("nu", 0.5, positive=True)
LEVELS = [UNKNOWN]


def helper(q):
    return UNKNOWN * q[0]


def observe(operator=pk.identity, points=POINTS, values=VALUES, noise=0.1, name=None):
    return pk.Observation(operator, points, values, noise, name)


def model(*operators, kernel=KERNEL, engine="closed-form"):
    return pk.Model(kernel, [observe(operator) for operator in operators or [pk.identity]], engine=engine)


def replaced(array, index, value):
    out = np.array(array, dtype=float)
    out[index] = value
    return out


def says(*words):
    """A pattern for messages that hold these words in this order."""
    return "(?s)" + ".*".join(map(re.escape, words))


def refused(*cases):
    """Parameters from `(what is wrong, how it is called, the error, words of the message…)`."""
    return pytest.mark.parametrize(
        "call, error, words", [pytest.param(*case[1:3], case[3:], id=case[0]) for case in cases]
    )


@pytest.fixture(scope="module")
def posterior():
    return pk.condition(KERNEL, [observe()])


@pytest.fixture
def compiled(caplog):
    """The functions that the test has compiled so far; `stage` only turns a NumPy array into a JAX one."""

    def names():
        found = [re.match(r"Compiling jit\((.*?)\) ", record.getMessage()) for record in caplog.get_records("call")]
        return [match[1] for match in found if match and match[1] != "stage"]

    with jax.log_compiles():
        yield names


@pytest.fixture
def nothing_compiled(posterior, compiled):
    yield
    assert compiled() == []


def test_what_is_compiled_is_seen(compiled):
    jax.jit(lambda q: q + 1)(POINTS)
    assert compiled() == ["<lambda>"]


# ── observations ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("nothing_compiled")
@refused(
    ("one point", lambda: observe(points=POINTS[0]), ValueError, "`points`", "(n, d)", "got shape (3,)", "q[None, :]"),
    ("points 3-D", lambda: observe(points=POINTS[None]), ValueError, "`points`", "(n, d)", "got shape (1, 5, 3)"),
    ("no points", lambda: observe(points=POINTS[:0], values=[]), ValueError, "empty", "at least one"),
    ("too few values", lambda: observe(values=VALUES[:3]), ValueError, "`values`", "5 points", "shape (3,)"),
    ("column of values", lambda: observe(values=VALUES[:, None]), ValueError, "`values`", "5 points", "shape (5, 1)"),
    ("one value for all", lambda: observe(values=1.0), ValueError, "`values`", "shape ()", "jnp.full(n, c)"),
    ("function as values", lambda: observe(values=np.sin), ValueError, "`values` needs real numbers", "ufunc"),
    ("text as points", lambda: observe(points=[["a", "b", "c"]]), ValueError, "`points` needs real numbers", "list"),
    ("other domain", lambda: observe(pk.Laplacian(Y)), ValueError, "`points` has 3 coordinates", "Δ_y", "4"),
    ("number as operator", lambda: observe(1.0), TypeError, "`operator`", "Laplacian(x)", "got 1.0"),
    ("function as operator", lambda: observe(lambda u: u), TypeError, "`operator`", "got <function"),
    ("operator class", lambda: observe(pk.Laplacian), TypeError, "`operator`", "got <class", "Laplacian"),
    ("coefficient as operator", lambda: observe(pk.Coefficient(np.sum)), TypeError, "`operator`", "got sum(q)"),
)
def test_observations_that_do_not_fit(call, error, words):
    with pytest.raises(error, match=says(*words)):
        call()


@pytest.mark.usefixtures("nothing_compiled")
@refused(
    ("too few", lambda: observe(noise=[0.1, 0.2]), ValueError, "`noise`", "each of the 5 points", "shape (2,)"),
    ("column", lambda: observe(noise=np.ones((5, 1))), ValueError, "`noise`", "one standard deviation", "shape (5, 1)"),
    ("negative", lambda: observe(noise=-0.5), ValueError, "`noise`", "none negative", "-0.5"),
    ("one negative", lambda: observe(noise=replaced(VALUES, 2, -3)), ValueError, "`noise`", "none negative", "-3"),
    ("unknown word", lambda: observe(noise="none"), ValueError, "'exact', 'learned' or 'robust'", "got 'none'"),
    ("zero start", lambda: observe(noise=pk.Learned(initial=0.0)), ValueError, "positive standard deviation", "0.0"),
    ("infinite start", lambda: observe(noise=pk.Learned("s", np.inf)), ValueError, "positive", "start from", "inf"),
)
def test_noise_that_does_not_fit(call, error, words):
    with pytest.raises(error, match=says(*words)):
        call()


@pytest.mark.usefixtures("nothing_compiled")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf], ids=str)
@pytest.mark.parametrize(
    "what, good, entry", [("points", POINTS, (3, 1)), ("values", VALUES, (2,)), ("noise", VALUES, (4,))]
)
def test_entries_that_are_not_finite_are_named(what, good, entry, bad):
    with pytest.raises(ValueError, match=says(f"`{what}` needs finite numbers", f"entry {entry} is {bad}")):
        observe(**{what: replaced(good, entry, bad)})


# ── operators ─────────────────────────────────────────────────────────────────────────────────────────────────────


@refused(
    ("unknown name", lambda: DOMAIN.coordinates("z"), KeyError, "no coordinate 'z'", "x, t"),
    ("D of a group", lambda: pk.D(X), ValueError, "single coordinates", "x has 2", "D(x[i])", "Laplacian(x)"),
    ("D of nothing", lambda: pk.D(), ValueError, "D needs the coordinate"),
    ("D of a name", lambda: pk.D("t"), TypeError, "coordinates of a domain", "got 't'"),
    ("Laplacian of a name", lambda: pk.Laplacian("x"), TypeError, "coordinates of a domain", "got 'x'"),
    ("D over two domains", lambda: pk.D(T, Y[0]), ValueError, "t and y[0]", "different domains"),
    (
        "sum over two domains",
        lambda: pk.D(T) + pk.Laplacian(Y),
        ValueError,
        "different domains",
        "(x, t)",
        "Δ_y on (y)",
    ),
    ("composed over two domains", lambda: pk.D(T) @ pk.D(Y[0]), ValueError, "different domains", "(x, t)", "(y)"),
    ("A * B", lambda: pk.D(T) * pk.Laplacian(X), TypeError, "linear in u", "(∂/∂t) * (Δ_x)", "A @ B"),
    ("A @ number", lambda: pk.D(T) @ 2.0, TypeError, "composes two operators", "got 2.0"),
    ("A @ function", lambda: pk.D(T) @ np.sin, TypeError, "composes two operators", "apply A to a function u: A(u)"),
    ("function * A", lambda: (lambda q: 1.0) * pk.D(T), TypeError, "got <function", "Coefficient(fn)"),
    ("A * function", lambda: pk.D(T) * (lambda q: 1.0), TypeError, "got <function", "Coefficient(fn)"),
    ("u * A for the unknown", lambda: pk.identity * pk.D(T), TypeError, "linear in u", "Coefficient(fn) * A"),
    ("a posterior mean * A", lambda: pk.condition(KERNEL, observe()).mean * pk.D(T), TypeError, "Coefficient(fn)"),
    ("A ** 2", lambda: pk.D(T) ** 2, TypeError, "linear in u", "A @ A"),
    ("identity ** 3", lambda: pk.identity**3, TypeError, "linear in u", "** 3", "A @ A"),
    ("2 ** A", lambda: 2 ** pk.D(T), TypeError, "linear in u"),
    ("A ^ 2", lambda: pk.D(T) ^ 2, TypeError, "linear in u"),
    ("A / B", lambda: pk.D(T) / pk.Laplacian(X), TypeError, "linear in u", "(∂/∂t) / (Δ_x)"),
    ("1 / A", lambda: 1 / pk.D(T), TypeError, "linear in u"),
    ("A / function", lambda: pk.D(T) / np.sin, TypeError, "divided by a number", "Coefficient(lambda q: 1 / a(q))"),
    ("A // 2", lambda: pk.D(T) // 2, TypeError, "linear in u"),
    ("A % 2", lambda: pk.D(T) % 2, TypeError, "linear in u"),
    ("abs(A)", lambda: abs(pk.D(T)), TypeError, "linear in u", "abs(∂/∂t)"),
    ("A < B", lambda: pk.D(T) < pk.Laplacian(X), TypeError, "no order", "Problem(domain, A, f, conditions)"),
    ("A >= 0", lambda: pk.D(T) >= 0, TypeError, "no order"),
    ("k + 1", lambda: UNKNOWN + 1, TypeError, "nu + 1", "Coefficient(lambda q, k:"),
    ("1 - k", lambda: 1 - UNKNOWN, TypeError, "1 - nu", "Coefficient(lambda q, k:"),
    ("k ** 2", lambda: UNKNOWN**2, TypeError, "nu ** 2", "Coefficient(lambda q, k:"),
    ("1 / k", lambda: 1 / UNKNOWN, TypeError, "1 / nu", "Coefficient(lambda q, k:"),
    ("Divergence of k q", lambda: pk.Divergence(X, lambda q: UNKNOWN * q[0]), TypeError, "'nu'", "lambda q, nu: …"),
    ("Divergence of k", lambda: pk.Divergence(X, lambda q: UNKNOWN.value), TypeError, "'nu'", "could not be learned"),
    ("Diffusion of exp k", lambda: pk.Diffusion(X, lambda q: np.exp(UNKNOWN)), TypeError, "'nu'", "Coefficient(lambda"),
    ("Directional of k", lambda: pk.Directional(X, lambda q: [UNKNOWN, 0.0]), TypeError, "'nu'", "[Coefficient("),
    (
        "Directional of a list",
        lambda: pk.Directional(X, lambda q: LEVELS[0] * q[:2]),
        TypeError,
        "'nu'",
        "[Coefficient(",
    ),
    ("Coefficient of k", lambda: pk.Coefficient(lambda q: UNKNOWN * q[0]), TypeError, "'nu'", "lambda q, nu: …"),
    ("k by default", lambda: pk.Coefficient(lambda q, k=UNKNOWN: k * q[0]), TypeError, "'nu'", "lambda q, nu: …"),
    ("k in a partial", lambda: pk.Coefficient(partial(np.multiply, UNKNOWN)), TypeError, "'nu'", "lambda q, nu: …"),
    ("k in a helper", lambda: observe(pk.Divergence(X, lambda q: helper(q))), TypeError, "return numbers", "Parameter"),
    ("k in a mean", lambda: pk.FunctionMean(lambda q: UNKNOWN * q[0]), TypeError, "'nu'", "only operators"),
    ("k and too few", lambda: pk.Directional(X, [UNKNOWN]), ValueError, "direction", "shape (2,)"),
    ("k and a function", lambda: pk.Directional(X, [UNKNOWN, np.sin]), TypeError, "Coefficient(fn)"),
    ("k in a crooked matrix", lambda: pk.Divergence(X, [[UNKNOWN, 0], [0]]), ValueError, "(2,) or (2, 2)"),
    ("array * A", lambda: np.ones(2) * pk.D(T), TypeError, "A coefficient is a number", "array([1., 1.])"),
    ("NaN * A", lambda: np.nan * pk.D(T), ValueError, "finite", "got nan"),
    ("Coefficient of a number", lambda: pk.Coefficient(2.0), TypeError, "function of the point", "got 2.0"),
    ("Coefficient with a number", lambda: pk.Coefficient(np.sum, 2.0), TypeError, "takes Parameter objects", "got 2.0"),
    ("negative Parameter", lambda: pk.Parameter("nu", -1, positive=True), ValueError, "'nu'", "positive", "got -1"),
    ("NaN Parameter", lambda: pk.Parameter("nu", np.nan), ValueError, "'nu'", "finite", "got nan"),
    ("short direction", lambda: pk.Directional(X, [1.0]), ValueError, "direction", "shape (2,)", "got shape (1,)"),
    ("NaN direction", lambda: pk.Directional(X, [1, np.nan]), ValueError, "direction", "finite", "nan"),
    ("shift of a name", lambda: pk.Shift("x", 1.0), TypeError, "coordinates of a domain", "got 'x'"),
    ("shift of a group by a number", lambda: pk.Shift(X, 1.0), ValueError, "a vector of 2", "got shape (), 1.0"),
    ("shift by a function", lambda: pk.Shift(T, np.sin), TypeError, "one number", "same at every point", "ufunc"),
    ("shift by a vector", lambda: pk.Shift(T, [1, 2]), ValueError, "Shift(t, by)", "one number", "shape (2,)"),
    ("shift by NaN", lambda: pk.Shift(T, np.nan), ValueError, "finite", "got nan"),
    ("shift by text", lambda: pk.Shift(T, "period"), ValueError, "one number", "got 'period'"),
    ("shift to nowhere", lambda: pk.Shift(X, [0, 0]), ValueError, "move somewhere", "use identity"),
    ("large matrix", lambda: pk.Diffusion(X, np.eye(3)), ValueError, "matrix a", "shape (2, 2)", "got shape (3, 3)"),
    ("skew matrix", lambda: pk.Diffusion(X, [[1, 2], [0, 1]]), ValueError, "symmetric", "(a + a.T) / 2"),
    ("long diagonal", lambda: pk.Divergence(X, np.ones(3)), ValueError, "diagonal", "shape (2,)", "got shape (3,)"),
)
def test_operators_that_have_no_meaning(call, error, words):
    with pytest.raises(error, match=says(*words)):
        call()


# ── kernels and embeddings ────────────────────────────────────────────────────────────────────────────────────────


@refused(
    (
        "embedding of another domain",
        lambda: pk.deep(OTHER, pk.Affine(np.ones((2, 3)))),
        ValueError,
        "3 inputs",
        "4 coord",
    ),
    ("groups too large", lambda: pk.deep(DOMAIN, IDENTITY, groups=[(0, 3)]), ValueError, "`groups`", "0 … 2", "(0, 3)"),
    ("groups negative", lambda: pk.deep(DOMAIN, IDENTITY, groups=[(-1,)]), ValueError, "`groups`", "0 … 2", "(-1,)"),
    (
        "empty group",
        lambda: pk.deep(DOMAIN, IDENTITY, groups=[(0,), ()]),
        ValueError,
        "`groups`",
        "list of groups",
        "()",
    ),
    ("no groups", lambda: pk.deep(DOMAIN, IDENTITY, groups=[]), ValueError, "`groups`", "list of groups", "[]"),
    ("negative length scale", lambda: pk.ard(DOMAIN, lengthscale=-1), ValueError, "`lengthscale`", "positive", "-1"),
    ("NaN length scale", lambda: pk.ard(DOMAIN, lengthscale=np.nan), ValueError, "`lengthscale`", "finite", "nan"),
    ("two length scales", lambda: pk.ard(DOMAIN, lengthscale=[1, 2]), ValueError, "`lengthscale`", "3", "shape (2,)"),
    ("zero variance", lambda: pk.ard(DOMAIN, variance=0), ValueError, "`variance`", "positive", "got 0"),
    ("two variances", lambda: pk.additive(DOMAIN, variance=[1, 2]), ValueError, "`variance`", "3", "shape (2,)"),
    ("sum over two domains", lambda: KERNEL + pk.ard(OTHER), ValueError, "different domains", "cannot be added"),
    ("negative alpha", lambda: pk.RationalQuadratic(-1.0), ValueError, "positive alpha", "-1.0"),
    ("no width", lambda: pk.MLP(3, 2, width=0, key=KEY), ValueError, "positive whole number as `width`", "got 0"),
    ("no latent", lambda: pk.Residual(3, 0, key=KEY), ValueError, "positive whole number as `latent_dim`", "got 0"),
    (
        "unknown activation",
        lambda: pk.MLP(3, 2, width=2, depth=1, activation="relu", key=KEY),
        ValueError,
        "'relu'",
        "gelu",
        "tanh",
    ),
    ("vector as matrix", lambda: pk.Affine([1, 2, 3]), ValueError, "`matrix` needs 2 axes", "got shape (3,)"),
    ("short offset", lambda: pk.Affine(np.eye(3), [1, 2]), ValueError, "`offset`", "3 rows", "2 entries"),
)
def test_kernels_that_cannot_be_built(call, error, words):
    with pytest.raises(error, match=says(*words)):
        call()


# ── models ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("nothing_compiled")
@refused(
    ("no observations", lambda: pk.Model(KERNEL, []), ValueError, "nothing to condition on", "at least one"),
    ("not an observation", lambda: pk.Model(KERNEL, [POINTS]), TypeError, "list of Observation", "got ndarray"),
    ("unknown engine", lambda: model(engine="fast"), ValueError, "Unknown engine 'fast'", "closed-form, autodiff"),
    ("kernel of another domain", lambda: model(kernel=pk.ard(OTHER)), ValueError, "3 coordinates", "over 4"),
    (
        "operator of another domain",
        lambda: model(pk.D(T), kernel=pk.ard(OTHER)),
        ValueError,
        "∂/∂t",
        "acts on 3",
        "over 4",
    ),
    (
        "too rough",
        lambda: model(THIRD, kernel=ROUGH, engine="autodiff"),
        ValueError,
        "differentiable 2 times",
        "needs 3",
    ),
    (
        "too rough in a sum",
        lambda: model(THIRD, kernel=KERNEL + ROUGH),
        ValueError,
        "differentiable 2 times",
        "needs 3",
    ),
    ("order three", lambda: model(THIRD), ValueError, "order 3", "closed forms go up to order 2", 'engine="autodiff"'),
)
def test_models_that_cannot_be_built(call, error, words):
    with pytest.raises(error, match=says(*words)):
        call()


def test_observations_of_two_domains():
    items = [observe(), observe(points=np.ones((5, 4)))]
    with pytest.raises(ValueError, match=says("points of one dimension", "[3, 4]")):
        pk.Model(KERNEL, items)


def test_a_name_of_a_parameter_with_two_values():
    operator = pk.Parameter("nu", 1.0) * pk.D(T) - pk.Parameter("nu", 2.0) * pk.Laplacian(X)
    with pytest.raises(ValueError, match=says("Parameter 'nu'", "two forms, 1 and 2", "Make it once")):
        model(operator)


def test_what_is_smooth_enough_is_taken():
    assert model(pk.Laplacian(X), kernel=ROUGH).engine == "closed-form"
    assert model(THIRD, engine="autodiff").engine == "autodiff"
    assert model(THIRD, kernel=pk.ard(DOMAIN, pk.Matern72()), engine="autodiff").engine == "autodiff"


# ── conditioning and prediction ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("nothing_compiled")
@pytest.mark.parametrize("use", [pk.condition, pk.negative_log_evidence])
def test_a_model_without_the_noise_level_of_an_observation(use):
    known = model()
    with pytest.raises(ValueError, match=says("no noise level 'wall'", "it has none", "with all its observations")):
        use(known, [observe(noise="learned", name="wall")])


@pytest.mark.usefixtures("nothing_compiled")
@pytest.mark.parametrize("use", [pk.condition, pk.negative_log_evidence])
def test_a_model_used_with_observations_it_cannot_take(use):
    known = model()
    with pytest.raises(ValueError, match="nothing to condition on"):
        use(known, [])
    with pytest.raises(ValueError, match=says("4 coordinates", "the kernel is over 3")):
        use(known, [observe(points=np.ones((5, 4)))])
    with pytest.raises(ValueError, match=says("order 3", 'engine="autodiff"')):
        use(known, [observe(THIRD)])


@pytest.mark.usefixtures("nothing_compiled")
@refused(
    ("one point", lambda p: p.predict(POINTS[0]), ValueError, "`points`", "(n, d)", "got shape (3,)", "q[None, :]"),
    ("two columns", lambda p: p.predict(POINTS[:, :2]), ValueError, "`points` has 2 coordinates", "kernel", "3"),
    ("no points", lambda p: p.predict(POINTS[:0]), ValueError, "empty", "at least one"),
    ("NaN", lambda p: p.predict(replaced(POINTS, (3, 1), np.nan)), ValueError, "`points`", "entry (3, 1) is nan"),
    ("other domain", lambda p: p.predict(POINTS, pk.Laplacian(Y)), ValueError, "Δ_y", "acts on 4", "kernel is over 3"),
    ("order three", lambda p: p.predict(POINTS, THIRD), ValueError, "order 3", 'engine="autodiff"'),
    ("covariance", lambda p: p.covariance(POINTS, other_points=POINTS[:, :2]), ValueError, "2 coordinates", "3"),
    ("sample", lambda p: p.sample(KEY, POINTS[:, :2]), ValueError, "2 coordinates", "3"),
)
def test_predictions_that_cannot_be_made(posterior, call, error, words):
    with pytest.raises(error, match=says(*words)):
        call(posterior)


def test_a_level_that_is_no_probability(posterior):
    with pytest.raises(ValueError, match=says("between 0 and 1", "got 95")):
        posterior.predict(POINTS).interval(95)


# ── size ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", [1e101, 1e150, 1e300, 1e-101, 1e-150, 1e-320])
def test_values_out_of_the_range_of_squares_are_refused(size):
    with pytest.raises(ValueError, match=says("between 1e-100 and 1e+100", "another unit")):
        observe(values=np.array([0.0, size, -size]), points=POINTS[:3])


def test_values_of_any_other_size_are_scaled_alike():
    values = np.sin(np.arange(len(POINTS)))
    one = pk.condition(KERNEL, observe(values=values, noise=0.1)).predict(POINTS).mean
    for size in (2.0**300, 2.0**-300):
        kernel = eqx.tree_at(
            lambda k: k.components[0].base.log_variance, KERNEL, replace_fn=lambda v, size=size: v + 2 * np.log(size)
        )
        data = observe(values=size * values, noise=0.1 * size)
        np.testing.assert_allclose(pk.condition(kernel, data).predict(POINTS).mean / size, one, rtol=1e-10)
    assert np.all(pk.condition(KERNEL, observe(values=0 * values, noise=0.1)).predict(POINTS).mean == 0)


@pytest.mark.parametrize("place", [1e16, 1e150, 1e300, 1.7e308])
def test_points_that_are_out_of_reach_of_the_arithmetic_are_refused(posterior, place):
    far = np.array(POINTS)
    far[1, 0] = -place
    with pytest.raises(ValueError, match=says("Point 1", "times the size of the domain", "units")):
        posterior.predict(far)
    far[1, 0] = -1e14
    assert np.all(np.isfinite(posterior.predict(far).variance)) and posterior.predict(far).mean[1] == 0


def test_a_coefficient_that_is_infinite_at_a_point_is_told(posterior):
    with pytest.raises(ValueError, match=says("no finite value at point 0", "coefficient")):
        posterior.predict(np.zeros((1, 3)), pk.Coefficient(lambda q: 1 / q[0]) * pk.D(T))


# ── memory ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("nothing_compiled")
@pytest.mark.parametrize("use", [partial(use, solver="dense") for use in (pk.condition, pk.negative_log_evidence)])
def test_a_matrix_that_does_not_fit_into_memory(use, monkeypatch):
    n = 20_000
    large = observe(points=np.zeros((n, 3)), values=np.zeros(n))
    monkeypatch.setattr("pdedkl.inference.memory.available_bytes", lambda: 2 << 30)
    words = says("20000 observed values", "20000 × 20000", "GiB", "2.0 GiB are free", "use at most")
    with pytest.raises(MemoryError, match=words) as refusal:
        use(pk.Model(KERNEL, [large]), [large])
    advised = int(re.search(r"at most (\d+)", str(refusal.value)).group(1))
    assert 5_000 < advised < 16_384  # the side of one matrix of 2 GiB


@pytest.mark.usefixtures("nothing_compiled")
def test_samples_that_do_not_fit_into_memory(posterior, monkeypatch):
    monkeypatch.setattr("pdedkl.inference.memory.available_bytes", lambda: 2 << 30)
    with pytest.raises(MemoryError, match=says("20000 × 20000", "2.0 GiB are free")):
        posterior.sample(KEY, np.zeros((20_000, 3)))


def test_a_batch_of_no_size_is_refused(posterior):
    with pytest.raises(ValueError, match="`batch_size`"):
        posterior.predict(POINTS, batch_size=-1)


def test_a_coefficient_that_is_no_scalar_is_refused():
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        observe(pk.Coefficient(lambda q: q) * pk.D(T))


def test_domains_of_one_dimension_do_not_mix():
    swapped = pk.Domain(t=(0, 1), x=[(0, 1)] * 2)
    with pytest.raises(ValueError, match="different domains"):
        pk.D(T) + pk.Laplacian(swapped.coordinates("x"))
    with pytest.raises(ValueError, match="different domains"):
        model(pk.Laplacian(swapped.coordinates("x")))


def test_a_parameter_that_is_positive_in_one_place_only():
    operator = pk.Parameter("a", 0.0) * pk.D(T) + pk.Parameter("a", 1.0, positive=True) * pk.D(X[0])
    with pytest.raises(ValueError, match="Parameter 'a'"):
        model(operator)


def test_a_model_without_the_parameter_of_an_operator(posterior):
    with pytest.raises(ValueError, match="no parameter nu"):
        posterior.predict(POINTS, pk.Parameter("nu", 3.0) * pk.D(T))


def test_a_mean_that_is_a_bare_function():
    with pytest.raises(TypeError, match="FunctionMean"):
        pk.Model(KERNEL, [observe()], mean=lambda q: 0.0)


def test_no_free_memory_at_all(monkeypatch):
    monkeypatch.setattr("pdedkl.inference.memory.available_bytes", lambda: -1)
    with pytest.raises(MemoryError):
        pk.condition(KERNEL, [observe()])


@pytest.mark.parametrize("wrong", (lambda: pk.D(T) + (lambda q: 1.0), lambda: (lambda q: 1.0) - pk.D(T)))
def test_a_bare_function_in_a_sum(wrong):
    with pytest.raises(TypeError, match=r"Coefficient\(fn\)"):
        wrong()


@refused(
    ("a domain", lambda p: p.check(DOMAIN), TypeError, "needs the problem that was solved", "Domain has no source"),
    ("a name", lambda p: p.check("heat"), TypeError, "needs the problem", "got a str"),
    ("data", lambda p: p.check([observe()]), TypeError, "needs the problem", "got a list", "posterior.predict(points)"),
    ("itself", lambda p: p.check(p), TypeError, "needs the problem", "got a Posterior"),
    ("another", lambda p: p.check(pk.problems.built_in("heat", dim=3)), ValueError, "x[0:3], t", "over x[0:2], t"),
    ("for domain", lambda p: pk.problems.built_in("heat", dim=2).refine(DOMAIN, 3), TypeError, "needs a Posterior"),
)
def test_a_check_says_what_to_pass(posterior, call, error, words):
    with pytest.raises(error, match=says(*words)):
        call(posterior)


@refused(
    ("source that uses it", lambda: problem(source=lambda q: UNKNOWN * q[0]), TypeError, "The source uses a Parameter"),
    ("value that uses it", lambda: problem(value=lambda q: UNKNOWN * q[0]), TypeError, "could not be learned"),
)
def test_an_unknown_number_on_the_right_is_refused(call, error, words):
    with pytest.raises(error, match=says(*words)):
        call()


def problem(source=0.0, value=0.0):
    return pk.Problem(DOMAIN, pk.D(T), source, [pk.Dirichlet(on=DOMAIN.boundary(X), value=value)])
