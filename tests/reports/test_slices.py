"""`posterior.plot`: a curve with its band, a plane with its maps, in one call."""

from __future__ import annotations

import matplotlib.figure
import numpy as np
import pytest

import pdedkl as pk

PROBLEM = pk.problems.built_in("heat", dim=2)
X, T = PROBLEM.domain.coordinates()
POSTERIOR = pk.condition(pk.ard(PROBLEM.domain), PROBLEM.sample(10, 10, 10))


def labels(figure):
    return [(axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) for axes in figure.axes if axes.get_xlabel()]


def test_one_coordinate_gives_a_curve_in_its_band():
    figure = POSTERIOR.plot("x[0]", at={"t": 0.25}, exact=PROBLEM.exact, level=0.9)
    assert isinstance(figure, matplotlib.figure.Figure)
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x[0]", "u")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["90 % interval", "prediction", "truth"]
    assert figure.get_suptitle() == "u at x[1] = 0.5, t = 0.25"
    curve = axes.lines[0]
    points = np.column_stack([curve.get_xdata(), *np.full((2, 401), [[0.5], [0.25]])])
    np.testing.assert_array_equal(curve.get_ydata(), POSTERIOR.predict(points).mean)
    assert tuple(axes.get_xlim()) == (0.0, 1.0)


def test_two_coordinates_give_a_plane_with_the_width_of_the_band():
    figure = POSTERIOR.plot(X[1], T, operator=pk.D(T))
    assert labels(figure) == [("x[1]", "t", "prediction"), ("x[1]", "", "95 % interval, ±")]
    assert figure.get_suptitle() == "∂/∂t u at x[0] = 0.5"
    assert "prediction − truth" in [title for *_, title in labels(POSTERIOR.plot(X, exact=PROBLEM.exact))]


def test_without_arguments_the_first_and_the_last_coordinate_are_shown():
    assert labels(POSTERIOR.plot())[0][:2] == ("x[0]", "t")
    domain = pk.Domain(z=(0, 3))
    posterior = pk.condition(pk.ard(domain), pk.Observation(pk.identity, [[1.0], [2.0]], [1.0, 3.0], noise=0.1))
    (axes,) = posterior.plot().axes
    assert axes.get_xlabel() == "z" and list(axes.lines[1].get_ydata()) == [1.0, 3.0]


def test_a_ball_is_cut_out_of_the_plane():
    domain = pk.Domain(x=pk.Ball([0.0, 0.0, 0.0], 2.0))
    points = np.random.default_rng(0).normal(size=(5, 3))
    posterior = pk.condition(pk.ard(domain), pk.Observation(pk.identity, points, points[:, 0], noise=0.1))
    filled = posterior.plot("x[0]", "x[1]", domain=domain).axes[0].collections[0]
    corners = np.abs(np.concatenate([path.vertices for path in filled.get_paths() if len(path.vertices)]))
    assert np.max(np.linalg.norm(corners, axis=1)) <= 2.0 + 1e-9


def test_a_notebook_shows_it_and_odd_names_do_no_harm():
    domain = pk.Domain(**{"$x_1": (0, 1), "y$": (0, 1)})
    posterior = pk.condition(pk.ard(domain), pk.Observation(pk.identity, [[0.5, 0.5]], [1.0], noise=0.1))
    assert posterior.plot()._repr_png_().startswith(b"\x89PNG")
    assert posterior.plot("$x_1")._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "coordinates, options, words",
    [
        (("y",), {}, "no coordinate 'y'"),
        ((X, T), {}, "one coordinate or over two"),
        ((T, T), {}, "two different ones"),
        ((T,), {"at": [0.5]}, "`at` needs a dictionary"),
        ((T,), {"level": 95}, "`level` is a probability"),
        ((T,), {"exact": 1.0}, "`exact` needs to be a function"),
        ((T,), {"domain": pk.Domain(x=(0, 1))}, "`domain` needs to be a Domain"),
        ((T,), {"domain": PROBLEM.domain, "at": {"x": 7.0}}, "No point of this picture"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_sentence(coordinates, options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        POSTERIOR.plot(*coordinates, **options)
