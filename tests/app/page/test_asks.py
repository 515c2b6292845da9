"""Questions about cells, each settled by a click: spellings of one thing, numbers with a unit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("uvicorn", reason="NOT TESTED: the page, because uvicorn is not installed.")

from tests.app.page.serving import Client, Served
from tests.app.page.test_open import settle
from transduce.app.page.preview import numbers_with_unit
from transduce.app.page.workspace import Saved, Workspace
from transduce.app.tables import files
from transduce.app.tables.layout import LayoutRequest


def laboratory(n=120):
    """A table of two people: M and male, 12.1 and 12.1 g/dL, 3.4 mmol/L and pending in the target."""
    random = np.random.default_rng(0)
    sex = pd.Series(random.choice(["M", "F"], n))
    written = sex.where(np.arange(n) % 5 > 0, sex.map({"M": "male", "F": "female"}))
    hb = pd.Series(13 + random.normal(size=n)).map("{:.1f}".format)
    ldl = pd.Series(3.0 + 0.4 * (sex == "M") + 0.1 * random.normal(size=n)).map("{:.2f}".format)
    ldl[3:9] += " mmol/L"
    ldl[20] = "pending"
    return pd.DataFrame(
        {
            "sex": written,
            "hb": hb.where(np.arange(n) % 10 > 0, hb + " g/dL"),
            "ldl": ldl.where(np.arange(n) < 80),
        }
    )


DOUBTFUL = "id|age|ldl\n" + "".join(
    f"P{i}|{20 + i}|{4729 + 37 * i:,}\n" if i % 3 else f"P{i}|{20 + i}|\n" for i in range(40)
).replace("P0|20|", "P0|20|4,729")


@pytest.fixture
def folder(tmp_path):
    laboratory().to_csv(tmp_path / "lab.csv", index=False)
    return tmp_path


def columns(client):
    found = client.get("/open/preview").json()["columns"]
    return {column["name"]: column for column in found}


def test_spellings_are_asked_about_and_merged(folder):
    with Served(Workspace(folder, "lab.csv")) as served:
        client = Client(served)
        (first, second) = columns(client)["sex"]["alike"]
        assert [text for text, _ in first] == ["F", "female"]
        assert [text for text, _ in second] == ["M", "male"]
        assert sum(times for _, times in first + second) == 120
        same = [["sex", "female", "F"], ["sex", "male", "M"]]
        assert settle(client, {"target": "ldl", "same": same}).status == 200
        assert columns(client)["sex"]["alike"] == []
        assert columns(client)["sex"]["treatment"].startswith("2 categories")
        assert settle(client, {"same": [["sex", "M"]]}).status == 400
        assert settle(client, {"same": [["sex", "M", 3]]}).status == 400
    options = Saved.read(folder / "lab.csv.transduce").choices.options()
    command = options.as_command("lab.csv", "ldl", "auto")
    assert command.endswith("--same sex,female,F --same sex,male,M")


def test_numbers_with_a_unit_are_asked_about(folder):
    with Served(Workspace(folder, "lab.csv")) as served:
        client = Client(served)
        unit = columns(client)["hb"]["with_unit"]
        assert (unit["unit"], unit["cells"], unit["others"]) == ("g/dL", 12, [])
        settle(client, {"target": "ldl", "number": ["hb"]})
        assert columns(client)["hb"]["empty"] == 0
        asks = columns(client)["ldl"]["ask"]["with_unit"]
        assert (asks["unit"], asks["cells"], asks["others"]) == ("mmol/L", 6, ["pending"])
        settle(client, {"number": ["hb", "ldl"], "missing": ["pending"]})
        target = columns(client)["ldl"]
        assert (target["kind"], target["empty"]) == ("number", 41)
        assert "ask" not in target
        client.get("/open/outlook")
        settle(client, {"target": "sex"})  # of another target nothing was said
        assert client.get("/open/state").json()["choices"]["number"] == ["hb", "ldl"]


def test_cells_of_several_units_are_not_asked_about():
    assert numbers_with_unit(["3 mmol/L", "60 mg/dL"], "point") is None
    assert numbers_with_unit(["pending", "lost"], "point") is None
    assert numbers_with_unit(["3,5 mmol/L"], "comma")["unit"] == "mmol/L"


def test_a_number_that_may_be_read_in_two_ways_is_asked_about(tmp_path):
    (tmp_path / "lab.txt").write_text(DOUBTFUL)
    with Served(Workspace(tmp_path, "lab.txt")) as served:
        client = Client(served)
        found = client.get("/open/preview").json()
        values = {"point": 4729.0, "comma": 4.729}
        assert found["two_ways"] == {"column": "ldl", "text": "4,729", **values}
        settle(client, {"target": "ldl", "decimal": "comma"})
        found = client.get("/open/preview").json()
        assert found["two_ways"] is None
        assert found["first"][0][2][1] == 4.729
        assert settle(client, {"decimal": "dot"}).status == 400


def test_the_repeated_command_says_the_decimal_sign(tmp_path):
    (tmp_path / "lab.txt").write_text(DOUBTFUL)
    table = files.read(tmp_path / "lab.txt", layout=LayoutRequest(decimal="comma"))
    assert table.flags == {"decimal": "comma"}
    assert table.frame["ldl"][0] == 4.729
    assert table.in_two_ways is None
