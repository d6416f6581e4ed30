"""Built-in problems fit their equations; problem files give a problem or one sentence."""

from __future__ import annotations

import pickle
import xml.etree.ElementTree as ElementTree

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pdedkl as pk
from pdedkl import problems
from pdedkl.operators import bind
from pdedkl.problems.advection_diffusion_inverse import TRUE

INVERSE = "advection-diffusion-inverse"


@pytest.mark.parametrize(
    "name, dim",
    [
        ("poisson", 1),
        ("poisson", 7),
        ("heat", 2),
        ("heat", 50),
        ("advection-diffusion-reaction", 1),
        ("advection_diffusion_reaction", 6),
        ("parametric-heat", None),
    ],
)
def test_built_in_problems_fit_their_exact_solutions(name, dim):
    found = problems.built_in(name, dim)
    found.verify(n=50).raise_if_wrong()
    assert found.equation == problems.BUILT_IN[found.name].equation
    if dim:
        assert len(found.domain.coordinates("x")) == dim
    assert ElementTree.fromstring(found.mathml).tag == "math"


def test_the_inverse_problem_fits_its_exact_solution_with_the_true_numbers():
    found = problems.built_in(INVERSE)
    raw = {name: np.log(value) if name == "nu" else value for name, value in TRUE.items()}
    equation = bind(found.operator, {name: jnp.asarray(value) for name, value in raw.items()})(found.exact)
    points = np.random.default_rng(0).uniform(size=(20, 3))
    np.testing.assert_allclose(jax.vmap(equation)(jnp.asarray(points)), 0.0, atol=1e-12)


def test_numbers_of_points_are_those_of_the_studies():
    points = {(n, d): problems.built_in(n, d).points for n in ("poisson", "heat") for d in (10, 50)}
    assert points["poisson", 10] == pk.Points(boundary=100, source=100)
    assert points["poisson", 50] == pk.Points(boundary=500, source=500)
    assert points["heat", 10] == pk.Points(boundary=100, initial=50, source=150)
    assert points["heat", 50] == pk.Points(boundary=200, initial=100, source=300)


def test_every_name_is_listed_with_its_equation():
    assert list(problems.BUILT_IN) == ["poisson", "heat", "advection-diffusion-reaction", "parametric-heat", INVERSE]
    for name, entry in problems.BUILT_IN.items():
        assert problems.built_in(name).name == entry.name and "u" in entry.equation


@pytest.mark.parametrize(
    "name, dim, message",
    [
        ("poison", None, r"No built-in problem 'poison': there are poisson, .* Did you mean 'poisson'\?"),
        (None, None, "No built-in problem None"),
        ("heat", 0, "`dim` needs at least one space dimension"),
        ("heat", 2.5, "`dim` needs a whole number"),
        ("parametric-heat", 3, "1 space dimension only: leave `dim` out"),
    ],
)
def test_unknown_names_and_dimensions_are_refused(name, dim, message):
    with pytest.raises(ValueError, match=message):
        problems.built_in(name, dim)


# ── problem files ─────────────────────────────────────────────────────────────────────────────────────────────────


def run(folder, text):
    path = folder / "mine.py"
    path.write_text(text, encoding="utf-8")
    return problems.from_file(path)


def test_the_template_runs_as_it_stands(tmp_path):
    found = run(tmp_path, problems.template())
    found.verify(n=50).raise_if_wrong()
    assert [len(o) for o in found.sample()] == [60, 30, 100]


def test_the_template_of_fields_states_what_is_true(tmp_path):
    found = run(tmp_path, problems.template(fields=True))
    found.verify(n=50).raise_if_wrong()
    assert found.fields == ("u", "v") and [len(o) for o in found.sample()] == [60, 60, 80, 80]


def test_a_file_may_use_its_neighbours_and_hold_a_script(tmp_path):
    (tmp_path / "my_helper.py").write_text("DIM = 3\n")
    text = (
        "from my_helper import DIM\nimport pdedkl as pk\nproblem = pk.problems.built_in('heat', DIM)\n"
        "factor = 2.0\ndef scaled(q):\n    return factor * problem.exact(q)\n"
        "if __name__ == '__main__':\n    raise SystemExit('the script')\n"
    )
    found = run(tmp_path, text)
    assert found.domain.dim == 4


def test_functions_of_a_file_travel_to_other_processes(tmp_path):
    found = run(tmp_path, problems.template())
    again = pickle.loads(cloudpickle.dumps(found.exact))
    assert again(np.array([0.2, 0.3, 0.4])) == found.exact(np.array([0.2, 0.3, 0.4]))


@pytest.mark.parametrize(
    "text, line, message",
    [
        ("x = 1\ny = (\n", 2, "line 2: this is not valid Python"),
        ("x = 1\n\ndef f():\n    return 1 / 0\nf()\n", 4, "line 4: ZeroDivisionError: division by zero"),
        ("import nothing_of_this_name\n", 1, "line 1: ModuleNotFoundError: No module named"),
        ("import pdedkl as pk\n\npk.Domain(x=(1, 0))\n", 3, "line 3: ValueError: `x` needs finite bounds"),
        ("import sys\nsys.exit(3)\n", 2, "line 2: it ended the program"),
        ("x = 1\n", None, "defines no `problem`"),
        ("problem = 3\n", None, "`problem` needs to be a pdedkl.Problem and is a int"),
        ("def problem(): ...\n", None, r"is a function; call it"),
        ("pr\x00blem = 1", None, "this is not valid Python"),
    ],
)
def test_a_bad_file_gets_one_sentence(tmp_path, text, line, message):
    with pytest.raises(problems.ProblemFileError, match=message) as caught:
        run(tmp_path, text)
    assert "mine.py" in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.line == line


def test_a_missing_file_and_a_folder(tmp_path):
    for path, message in ((tmp_path / "no.py", "no such file"), (tmp_path, "cannot be read")):
        with pytest.raises(problems.ProblemFileError, match=message):
            problems.from_file(path)
