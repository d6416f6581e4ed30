"""What `fit` cannot use is refused at once, with a message that says what came and what to do."""

from __future__ import annotations

import re

import numpy as np
import pytest
import ridge

import pdedkl as pk

DATA = ridge.observations()
FLAT = pk.Observation(pk.identity, np.zeros((2, 2)), [1.0, 2.0])
SMALLER = pk.Domain(x=[(0.4, 0.6)] * 3)
OUTSIDE = pk.Observation(pk.identity, [[0.5] * 3, [0.5, 1.5, 0.5]], [1.0, 2.0])
WITH_TIME = pk.Domain(x=[(0.0, 1.0)] * 2, t=(0.0, 1.0))


@pytest.mark.parametrize(
    "problem, data, options, error, words",
    [
        (ridge.DOMAIN, DATA, {"recipe": "best"}, ValueError, ["recipe 'best'", "default, paper"]),
        (ridge.DOMAIN, DATA, {"model": "svm"}, ValueError, ["model 'svm'", "dkl, linear, gp"]),
        (ridge.DOMAIN, DATA, {"latent_dim": 0}, ValueError, ["`latent_dim`", "positive whole number", "None", "0"]),
        (ridge.DOMAIN, DATA, {"latent_dim": 2.5}, ValueError, ["`latent_dim`", "positive whole number", "2.5"]),
        (ridge.DOMAIN, DATA, {"groups": -1}, ValueError, ["`groups`", "positive whole number", "-1"]),
        (ridge.DOMAIN, DATA, {"prior_strength": -0.5}, ValueError, ["`prior_strength`", "not negative", "-0.5"]),
        (ridge.DOMAIN, DATA, {"accuracy": 0.0}, ValueError, ["`accuracy`", "between 0 and 1", "0.0"]),
        (ridge.DOMAIN, DATA, {"accuracy": 0.1, "recipe": "paper"}, ValueError, ["`accuracy`", "default recipe"]),
        (ridge.DOMAIN, DATA, {"prior_strength": np.nan}, ValueError, ["`prior_strength`", "not negative", "nan"]),
        (ridge.DOMAIN, DATA, {"prior_strength": np.inf}, ValueError, ["`prior_strength`", "finite number", "inf"]),
        (ridge.DOMAIN, DATA, {"engine": "magic"}, ValueError, ["engine 'magic'", "closed-form, autodiff"]),
        (ridge.DOMAIN, DATA, {"solver": "lu"}, ValueError, ["solver 'lu'", "auto, dense, iterative"]),
        (ridge.DOMAIN, DATA, {"trained_values": 0}, ValueError, ["`trained_values`", "positive whole number", "0"]),
        (SMALLER, DATA, {}, ValueError, ["Point 0 of observation 'u'", "outside the domain", "units"]),
        (ridge.DOMAIN, DATA, {"validation": OUTSIDE}, ValueError, ["Point 1 of observation 'u'", "1 of 2 points"]),
        (ridge.DOMAIN, FLAT, {}, ValueError, ["2 coordinates", "domain has 3", "all its coordinates"]),
        (WITH_TIME, DATA, {}, ValueError, ["Δ_x", "(x)", "(x, t)"]),
        (ridge.DOMAIN, [], {}, ValueError, ["at least one Observation"]),
        (ridge.DOMAIN, [np.zeros(3)], {}, TypeError, ["list of Observation", "ndarray"]),
        ([(0, 1)] * 3, DATA, {}, TypeError, ["a problem or a Domain", "got list"]),
        (DATA, ridge.DOMAIN, {}, TypeError, ["fit(problem, data)", "got list"]),
    ],
)
def test_arguments_that_do_not_fit(problem, data, options, error, words):
    with pytest.raises(error, match="(?s)" + ".*".join(map(re.escape, words))):
        pk.fit(problem, data, **options)


def test_a_problem_is_anything_with_a_domain():
    class Problem:
        domain = "the unit cube"

    with pytest.raises(TypeError, match="got Problem"):
        pk.fit(Problem(), DATA)
