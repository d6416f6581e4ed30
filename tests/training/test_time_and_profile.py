"""A fit that keeps to its time, and one whose roughness is given."""

from __future__ import annotations

import time

import numpy as np
import pytest
import ridge

import pdedkl as pk
from pdedkl.training.monitor import OUT_OF_TIME, Monitor


def test_the_plain_kernel_is_there_even_after_no_time():
    begin = time.monotonic()
    found = pk.fit(ridge.DOMAIN, ridge.observations(), seconds=0.1)
    assert time.monotonic() - begin < 60, "a whole fit of this model takes longer than this in a busy machine"
    assert found.training.stopped == OUT_OF_TIME and found.training.kernel == "inputs"
    assert [name for name, _ in found.training.candidates] == ["inputs"]
    predicted = found.predict(ridge.ELSEWHERE)
    assert np.all(np.isfinite(predicted.mean)) and np.all(predicted.std > 0)
    assert "the time was up" in str(found.training)


def test_enough_time_changes_nothing():
    plain, timed = (
        pk.fit(ridge.DOMAIN, ridge.observations(), model="gp", profile=pk.SquaredExponential(), seconds=s)
        for s in (None, 3600.0)
    )
    assert timed.training.stopped is None and all(step.allowed is not None for step in timed.training.history)
    np.testing.assert_array_equal(ridge.parameters(plain), ridge.parameters(timed))


def test_a_phase_is_not_begun_if_its_preparation_takes_too_long():
    monitor = Monitor(allowed=10.0)
    assert monitor.time_for_a_phase() and monitor.stopped is None
    monitor._preparation = 20.0
    assert not monitor.time_for_a_phase() and monitor.stopped == OUT_OF_TIME
    assert Monitor(allowed=None, _preparation=1e9).time_for_a_phase()


@pytest.mark.parametrize("seconds", (0, -1.0, float("inf"), float("nan"), "60"))
def test_times_that_are_none_are_refused(seconds):
    with pytest.raises(ValueError, match="`seconds` needs a positive number"):
        pk.fit(ridge.DOMAIN, ridge.observations(), seconds=seconds)


def test_a_profile_that_is_given_is_that_of_every_kernel():
    found = pk.fit(ridge.DOMAIN, ridge.observations(), model="linear", profile=pk.Matern52())
    assert all("Matérn" not in name and "rational" not in name for name, _ in found.training.candidates)
    profiles = [component.base.profile for component in found.model.kernel.components]
    assert len(found.training.candidates) > 1 and all(profile == pk.Matern52() for profile in profiles)


@pytest.mark.parametrize("profile", (pk.Matern52, "Matérn 5/2"))
def test_what_is_no_profile_is_refused(profile):
    with pytest.raises(TypeError, match=r"such as Matern52\(\), with parentheses"):
        pk.fit(ridge.DOMAIN, ridge.observations(), profile=profile)
