"""Solutions that grow from one end are solved on a part of the interval first."""

import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl.inference.linearising import zeros
from pdedkl.training.journal import Journal
from pdedkl.training.marching import End, marched, open_end
from pdedkl.training.monitor import Monitor
from pdedkl.training.newton import Newton
from pdedkl.training.phases import Trainer

PLANE = pk.Domain(x=(-1, 1), t=(0, 2))
X, T = PLANE.coordinates("x", "t")
U = pk.fields("u")
HEAT = pk.D(T) @ U - pk.D(X, X) @ U + U**3 == 0


def sampled(*conditions):
    silenced = ["initial", "level", "faces", "direction", "zero"]
    return pk.Problem(PLANE, equations=[HEAT], conditions=[*conditions], silenced=silenced).sample()


@pytest.mark.parametrize(
    "conditions, expected",
    [
        ([pk.Initial(U, T, value=0.0), pk.Dirichlet(U, on=PLANE.boundary(X), value=0.0)], End(1, 1)),
        ([pk.Dirichlet(U, on=PLANE.final(T), value=1.0)], End(1, -1)),
        ([pk.Initial(U, T, value=1.0), pk.Dirichlet(U, on=PLANE.final(T), value=0.0)], None),
        ([pk.Sensors(U, [[0.0, 1.0], [0.3, 0.4]], [1.0, 2.0], noise=0.1)], None),
    ],
)
def test_the_end_at_which_a_solution_begins(conditions, expected):
    assert open_end(PLANE, sampled(*conditions)) == expected


def test_a_solution_is_extended_from_its_end():
    line = pk.Domain(t=(0, 2))
    (t,) = line.coordinates()
    stated = pk.Problem(line, equations=[pk.D(t) @ U + U**2 == 0], conditions=[pk.Initial(U, t, value=1.0)])
    data = stated.sample(initial=1, source=24)
    trainer, parts = Trainer(Journal(None, ""), Monitor()), []

    def make(some, name):
        parts.append((name, max(float(np.max(item.points)) for item in some)))
        return Newton(line, some, trainer, name=name)

    found, history = marched(make, data, zeros(data), open_end(line, data))
    # The first is of all data, and tells the domain.
    names, ends = zip(*parts[1:])
    assert names == ("t ≤ 0.5", "t ≤ 1.5", "t ≤ 2") and all(end <= limit for end, limit in zip(ends, (0.5, 1.5, 2)))
    assert len(history) >= 3 and found.posterior is not None
    at = jnp.linspace(0, 2, 30)
    np.testing.assert_allclose(found.posterior.predict(at[:, None]).mean, 1 / (1 + at), atol=2e-2)
