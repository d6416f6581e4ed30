"""Which of the trained kernels is chosen, from their left-out errors and their evidence."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pdedkl.training.judging import Candidate, best_of
from pdedkl.training.objective import LeftOut


def candidate(name, objective, errors, alike=True, left=1e-3):
    found = Candidate(name, SimpleNamespace(value=objective))
    found.objective = objective
    found.left_out_each = [LeftOut("A u", errors[0], 0.0, alike, left), LeftOut("u", errors[1], 0.0)]
    return found


def chosen(*candidates):
    return best_of(candidates).name


def test_evidence_decides_where_all_values_are_predicted_as_well():
    assert chosen(candidate("a", -500.0, (0.1, 0.02)), candidate("b", -520.0, (0.2, 0.03))) == "b"


@pytest.mark.parametrize("errors", [(1e-7, 1.0), (4.0, 1e-3)])
def test_a_kernel_that_misses_one_kind_of_values_is_not_chosen_for_the_others(errors):
    """A kernel on which the equation always holds, such as a constant, has the best evidence, and knows nothing."""
    assert chosen(candidate("a", -500.0, (0.36, 0.026)), candidate("b", -2300.0, errors)) == "a"


def test_zeros_that_are_predicted_do_not_make_up_for_values_that_are_not():
    """As in a homogeneous equation around a hole, where both kernels miss something."""
    seeing, blind = (1.2, 2e-3), (2e-6, 0.99)
    assert chosen(candidate("a", -286.0, seeing), candidate("b", 60.0, blind)) == "a"
    assert chosen(candidate("a", -286.0, seeing, False), candidate("b", 60.0, blind, False)) == "b"


def test_the_data_being_explained_decides_first():
    assert chosen(candidate("a", -500.0, (1e-6, 1e-9)), candidate("b", -400.0, (1e-9, 1e-6))) == "a"


def test_zeros_of_which_nothing_is_known_explain_nothing():
    """As with a kernel that takes the equation for white noise: its mean is zero, and so are the errors of zeros."""
    assert chosen(candidate("a", -500.0, (1e-2, 1e-2)), candidate("b", 1700.0, (1e-12, 1e-6), left=0.98)) == "a"


def test_errors_of_u_decide_where_they_are_known():
    """Left-out values of a payoff with a kink: what is missed of the equation there hardly matters for `u`."""
    rough, smooth = candidate("rough", -1316.0, (0.13, 3.6e-3)), candidate("smooth", -900.0, (0.033, 0.055))
    assert best_of([rough, smooth]).name == "smooth"
    known = {"rough": 2.3e-2, "smooth": 5.5e-2}
    assert best_of([rough, smooth], lambda found: known[found.name]).name == "rough"
    known = {"rough": 2.3e-1, "smooth": 5.5e-2}
    assert best_of([rough, smooth], lambda found: known[found.name]).name == "smooth"
