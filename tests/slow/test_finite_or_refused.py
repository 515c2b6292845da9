"""Every public name with every odd value, and with odd values that Hypothesis makes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests import finite

ENTRIES = finite.entries()
ARRAYS = [
    pytest.param(name, call, argument, id=f"{name} {call.name} {argument}")
    for name, calls in ENTRIES.items()
    for call in calls
    for argument in call.replaced
    if isinstance(call.arguments[argument], np.ndarray)
    and call.arguments[argument].dtype.kind == "f"
]
CALLS = [
    pytest.param(name, call, id=f"{name} {call.name}")
    for name, calls in ENTRIES.items()
    for call in calls
    if call.slow
]
NUMBERS = st.one_of(
    st.floats(-10.0, 10.0),
    st.sampled_from([0.0, -0.0, 1.0, 1e-200, 1e-308, 1e100, -1e100, 1e154, np.nan, np.inf]),
)


@pytest.mark.parametrize(("name", "call"), CALLS)
def test_all_odd_values(name, call):
    broken = finite.broken_promises(name, call)
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(("name", "call", "argument"), ARRAYS)
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_numbers(name, call, argument, data):
    """Arrays of the right shape, a little shorter or longer, with any numbers in them."""
    good = call.arguments[argument]
    n_rows = data.draw(st.sampled_from([len(good), len(good), len(good), 1, len(good) + 1]))
    values = data.draw(hnp.arrays(float, (n_rows, *good.shape[1:]), elements=NUMBERS))
    odd = finite.Odd(f"{values.tolist()}", values)
    if finite.left_open(name, argument, odd):
        return
    broken = finite.broken_promise(call.function, {**call.arguments, argument: values}, odd)
    assert not broken, broken
