"""Problems of several fields: statements, training, calibration and verdicts."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.checking.check import _unseen
from pdedkl.checking.determined import undetermined
from pdedkl.verdicts import Comparison

LINE = pk.Domain(x=(0, 1))
(X,) = LINE.coordinates()
U, V = pk.fields("u", "v")
D = pk.D
SIN, COS = (lambda q: jnp.sin(2 * q[0])), (lambda q: jnp.cos(2 * q[0]))
ENDS = LINE.boundary(X)


def rotation(**more):
    """`u' = 2 v`, `v' = −2 u`: a sine and a cosine."""
    return pk.Problem(
        LINE,
        equations=[D(X) @ U - 2.0 * V == 0, D(X) @ V + 2.0 * U == 0],
        conditions=[pk.Dirichlet(U, on=LINE.face(X, "lower"), value=0.0), pk.Dirichlet(V, on=[[0.0]], value=[1.0])],
        exact={U: SIN, V: COS},
        **more,
    )


def fitted(problem, *counts, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pk.fit(problem, problem.sample(*counts), progress=False, **more)


def errors(posterior, problem, *rows):
    at = problem.interior(100)
    return [float(np.sqrt(np.mean((posterior.predict(at, r).mean - problem.truth(at, r)) ** 2))) for r in rows]


def test_a_linear_system_is_solved_with_error_bars_and_a_verdict():
    problem = rotation()
    assert problem.fields == ("u", "v") and problem.lint() == () and problem.verify(n=10).ok
    assert problem.equation == "∂u/∂x - 2 v = 0; ∂v/∂x + 2 u = 0"
    posterior = fitted(problem, 12, 1)
    assert max(errors(posterior, problem, U, V, D(X) @ V - U)) < 1e-4
    assert posterior.verdict.status in ("calibrated", "not calibrated")
    assert {c.name for c in posterior.verdict.comparisons} >= {"∂u/∂x - 2 v", "∂v/∂x + 2 u"}
    assert posterior.model.kernel.fields == ("u", "v")


def test_error_bars_of_a_field_that_nothing_fresh_speaks_of_are_not_vouched_for():
    """`v` is given at one point: it has no fresh values, and counts as compared only by a comparison inside."""
    problem = rotation()
    kernel = pk.ard(LINE).of(U) + pk.ard(LINE).of(V)
    posterior = pk.condition(kernel, problem.sample(12, 1))
    fresh = problem.fresh(5, purpose="check")
    (found,) = _unseen(posterior, fresh, ())
    assert "the error of v is" in found
    inside = Comparison("v inside", 5, 1.0, 0.1, 0.1, 1.0, 0.95, (0.5,), 0.1)
    assert _unseen(posterior, fresh, (inside,)) == ()
    alone = pk.condition(pk.ard(LINE), pk.Observation(pk.identity, [[0.5]], [1.0], 0.1))
    assert _unseen(alone, (), ()) == ()


def test_each_equation_and_each_field_has_its_own_points():
    problem = pk.Problem(
        LINE,
        equations=[D(X, X) @ U + V == 1, D(X, X) @ V == U],
        conditions=[pk.Dirichlet(U, on=ENDS, value=0.0), pk.Dirichlet(V, on=ENDS, value=0.0)],
    )
    assert [len(item) for item in problem.sample(source=7, boundary=2)] == [2, 2, 7, 7]


def test_a_nonlinear_system_is_solved():
    """`u' = u v`, `v' = −u²` with `u = 1/cosh x` and `v = −tanh x`."""
    problem = pk.Problem(
        LINE,
        equations=[D(X) @ U - U * V == 0, D(X) @ V + U**2 == 0],
        conditions=[pk.Dirichlet(U, on=[[0.0]], value=1.0), pk.Dirichlet(V, on=[[0.0]], value=0.0)],
        exact={"u": lambda q: 1 / jnp.cosh(q[0]), "v": lambda q: -jnp.tanh(q[0])},
    )
    assert problem.verify(n=10).ok
    posterior = fitted(problem, 12, model="gp", start={"u": lambda q: 1.0, "v": lambda q: 0.0 * q[0]})
    assert max(errors(posterior, problem, U, V)) < 1e-4
    assert posterior.training.iterations[-1].change < 1e-3


def test_a_field_that_is_known_up_to_a_constant_is_undetermined():
    with pytest.warns(pk.ProblemWarning, match="level of v"):
        problem = pk.Problem(
            LINE,
            equations=[D(X, X) @ U + D(X) @ V == 0, D(X) @ U == 1],
            conditions=[pk.Dirichlet(U, on=ENDS, value=lambda q: q[0])],
        )
    posterior = fitted(problem, 8, 2, model="gp")
    assert posterior.verdict.status == "undetermined"
    assert "level of v" in posterior.verdict.reasons[0]
    at = problem.interior(20)
    one = jnp.asarray(at[0])
    left = posterior.predict(at, V).variance / posterior.model.kernel.between("v", one, "v", one)
    assert np.all(left > 0.01) and np.all(posterior.predict(at, U).variance < 1e-2 * posterior.predict(at, V).variance)


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        (lambda: rotation().truth([[0.5]]), r"truth\(points, u\)"),
        (lambda: rotation().truth([[0.5]], pk.fields("w")), "the field w, which is not known here: there is u, v"),
        (
            lambda: pk.Problem(LINE, equations=[U + V == 0], conditions=[pk.Dirichlet(on=ENDS, value=0.0)]),
            r"does not say of which it is: give it first, as in Dirichlet\(u",
        ),
        (
            lambda: pk.Problem(
                LINE, equations=[U + V == 0], conditions=[pk.Dirichlet(U, on=ENDS, value=0.0)], exact=SIN
            ),
            "a function for each field",
        ),
        (
            lambda: pk.Problem(
                LINE, equations=[U + V == 0], conditions=[pk.Dirichlet(U, on=ENDS, value=0.0)], exact={U: SIN}
            ),
            "v has none",
        ),
        (lambda: pk.Dirichlet("u", on=ENDS, value=0.0), "multiple values"),
        (lambda: pk.fit(rotation(), rotation().sample(4, 1), start=SIN), "for nonlinear equations"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(wrong, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        wrong()


def test_fields_without_an_equation_are_named():
    with pytest.warns(pk.ProblemWarning, match="No equation contains v"):
        pk.Problem(
            LINE,
            equations=[D(X) @ U == 1],
            conditions=[pk.Dirichlet(U, on=ENDS, value=0.0), pk.Dirichlet(V, on=ENDS, value=0.0)],
        )
    with pytest.warns(pk.ProblemWarning, match="2 fields, u, v, and 1 equations: v may be free"):
        pk.Problem(LINE, equations=[D(X) @ U + V == 1], conditions=[pk.Dirichlet(U, on=ENDS, value=0.0)])


def test_an_equation_with_a_known_part_is_a_row():
    """`u'' + 1 = 0`: what is known belongs on the right-hand side, also in a condition."""
    a = pk.Coefficient(lambda q: 1 + q[0], name="a")
    problem = pk.Problem(
        LINE,
        equations=[a * (D(X, X) @ U + 1) / 2 - a == 3],
        conditions=[
            pk.Dirichlet(U - 2, on=LINE.face(X, "lower"), value=1.0),
            pk.Dirichlet(U + a, on=[[1.0]], value=[1.0]),
        ],
    )
    lower, upper, inside = problem.statements
    assert [s.operator.order for s in problem.statements] == [0, 0, 2] and problem.sample(source=3, boundary=1)
    q = jnp.asarray([0.5])
    assert float(inside.value(q)) == 3.75 and float(lower.value(q)) == 3.0 and upper.value.tolist() == [-1.0]


def test_a_field_that_is_zero_has_converged_and_has_no_infinite_errors():
    """`−u'' + u³ + v = f`, `−v'' + u v = 0` with `v = 0`."""
    problem = pk.Problem(
        LINE,
        equations=[-(D(X, X) @ U) + U**3 + V == (lambda q: 4 * SIN(q) + SIN(q) ** 3), -(D(X, X) @ V) + U * V == 0],
        conditions=[pk.Dirichlet(U, on=ENDS, value=SIN), pk.Dirichlet(V, on=ENDS, value=0.0)],
        exact={U: SIN, V: lambda q: 0.0 * q[0]},
    )
    posterior = fitted(problem, 15, 2)
    assert max(errors(posterior, problem, U, V)) < 1e-3
    assert "did not converge" not in " ".join(posterior.verdict.reasons)
    assert posterior.verdict.error_u < 1e-2


def test_a_pressure_that_is_given_at_one_point_is_determined():
    """Slow flow: the equations know the pressure beside larger terms, and rows have noise."""
    square = pk.Domain(x=[(0, 1)] * 2)
    x, (u, v, p) = square.coordinates("x"), pk.fields("u", "v", "p")
    laplacian, corner = pk.Laplacian(x), pk.Dirichlet(p, on=[[0, 0]], value=[0.0])
    walls = [pk.Dirichlet(f, on=square.boundary(x), value=0.0) for f in (u, v)]
    equations = [D(x[0]) @ p - laplacian @ u == 1, D(x[1]) @ p - laplacian @ v == 0, D(x[0]) @ u + D(x[1]) @ v == 0]
    problem = pk.Problem(square, equations=equations, conditions=[*walls, corner])
    assert undetermined(problem, problem.sample(5, 5)) == ()
    slipping = [walls[0], pk.Dirichlet(v, on=square.face(x[0], "lower"), value=0.0)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        free = pk.Problem(
            square, equations=equations, conditions=[*slipping, pk.Dirichlet(p, on=[[0, 0]], value=[0.0])]
        )
    assert any("leave" in text and "open" in text for text in undetermined(free, free.sample(5, 5)))


def test_fields_that_are_alike_share_a_process():
    """`v = −u/2` is measured at six points only: learned weights carry over what is known of `u`."""
    rng = np.random.default_rng(0)
    many, few = np.linspace(0, 1, 24)[:, None], np.array([[0.05], [0.25], [0.4], [0.6], [0.8], [0.95]])
    of_u = lambda q: np.sin(7 * q[:, 0]) + 0.5 * np.cos(11 * q[:, 0])
    data = [
        pk.Observation(U, many, of_u(many) + 1e-3 * rng.normal(size=24), noise=1e-3),
        pk.Observation(V, few, -0.5 * of_u(few), noise=1e-3),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = pk.fit(LINE, data, progress=False)
    assert posterior.training.kernel == "inputs, shared by fields"
    at = np.linspace(0.1, 0.9, 50)[:, None]
    assert np.max(np.abs(posterior.predict(at, V).mean + 0.5 * of_u(at))) < 0.05
