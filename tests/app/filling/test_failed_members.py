"""A member of the blend that fails is left out of a fill, and everything that describes the fill says so."""

from __future__ import annotations

import json

import pytest

from transduce import TransductiveGPRegressor, fill
from transduce.datasets import load_houses
from transduce.ensemble.blend_fit import MemberFailedWarning

FAILED = "it failed: the machine has no memory left"


@pytest.mark.parametrize("error", [MemoryError, RuntimeError])
@pytest.mark.parametrize("guarantee", ["row", "column"])
def test_a_failed_member_is_named_everywhere(monkeypatch, error, guarantee):
    def fail(self, X, y):
        raise error("the machine has no memory left")

    monkeypatch.setattr(TransductiveGPRegressor, "fit", fail)
    table = load_houses()[0].iloc[:160]
    with pytest.warns(MemberFailedWarning, match="'gaussian_process' failed and is left out"):
        result = fill(table, "price", guarantee=guarantee, budget_seconds=1e4)
    members = result.members.set_index("name")
    assert members.loc["gaussian_process", "note"] == FAILED
    assert members["weight"].sum() == pytest.approx(1.0)
    message = "Member 'gaussian_process' failed and is left out: the machine has no memory left"
    assert result.notes.count(message) == 1
    summary = json.loads(result.json())
    assert message in summary["notes"]
    notes = {member["name"]: member["note"] for member in summary["members"]}
    assert notes["gaussian process"] == FAILED
    assert FAILED in result.report()
