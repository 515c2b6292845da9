"""Ten tables as they are met: each is filled, with what is unusual in it said, or refused with one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest
from typer.testing import CliRunner

from tests.app.tables.noted import texts
from transduce.app.cli.app import app
from transduce.app.tables.features import vectorize

N = 120
RNG = np.random.default_rng(3)
A, B = RNG.uniform(0, 100, N), RNG.normal(10, 3, N)


def lines(header, make, end="\n"):
    return end.join([header, *(make(i) for i in range(N))])


def laboratory():
    def row(i):
        lead = "<5" if i % 17 == 0 else "n.b." if i == 33 else f"{A[i]:.2f}".replace(".", ",")
        ph = f"{7 + B[i] / 30:.1f}".replace(".", ",") + (" *" if i == 5 else "")
        y = "" if i % 2 else f"{0.5 * A[i] + B[i]:.1f}".replace(".", ",")
        return f"P{i:03d};{lead};{ph};{int(B[i] * 10)} cm;{y}"

    return "a.csv", lines("Probe;Blei mg/l;pH;Tiefe (cm);y", row).encode("cp1252")


def survey():
    def row(i):
        age = 999 if i % 20 == 0 else int(20 + A[i] / 2)
        member = ["true", "TRUE", "False"][i % 3]
        return f"{i + 1},{age},{['agree', ' disagree'][i % 2]},{member},{'' if i % 3 == 0 else age}"

    return "a.csv", lines("respondent,age,likes it,member,y", row).replace(
        ",999\n", ",40\n"
    ).encode()


def sensor():
    def row(i):
        time = pd.Timestamp("2024-03-30T00:00+01:00") + pd.Timedelta(hours=i)
        temperature = "ERR" if i % 40 == 7 else "32767" if i % 50 == 9 else f"{B[i]:.2f}"
        return f"{time.isoformat()}\t{temperature}\t{'' if i % 2 else f'{3 * B[i]:.3f}'}"

    return "a.txt", lines("time\ttemp\ty", row, "\r\n").encode("utf-16")


def bank():
    def row(i):
        value = (A[i] - 30) * 1000
        amount = f"({-value:,.0f})" if value < 0 else f"{value:,.0f}"
        label = "" if i % 2 else "unknown" if i % 30 == 0 else "high" if value < 0 else "low"
        return f'AC-{i:04d},"${amount}",{B[i]:.1f}%,{label}'

    return "a.csv", lines('account,"balance, USD",growth,y', row).encode()


def codes():
    def row(i):
        return f"{i},{A[i]:.1f},,x,{'' if i % 2 else '01067' if A[i] > 50 else '50667'}"

    return "a.csv", lines(" id , size ,empty,constant,y", row).encode()


def nested():
    rows = [
        {
            "id": 10**20 + i,
            "ok": bool(i % 2),
            "x": None if i % 11 == 0 else A[i],
            "y": None if i % 3 == 0 else 2 * A[i],
        }
        for i in range(N)
    ]
    return "a.json", json.dumps(rows).encode()


def orders():
    book = openpyxl.Workbook()
    book.active.append(["See the second sheet"])
    sheet = book.create_sheet("Data 2024")
    sheet.append(["date", "quantity", "y", "note"])
    for i in range(N):
        date = pd.Timestamp("2024-01-01").to_pydatetime() + pd.Timedelta(days=i)
        quantity = str(int(A[i])) if i % 9 else int(A[i])
        sheet.append(
            [
                date,
                quantity,
                None if i % 2 else round(5 * A[i], 2),
                "=A1" if i == 3 else f"lot {i % 7}",
            ]
        )
    book.save("a.xlsx")
    return "a.xlsx", None


def stars():
    def row(i):
        return f"{A[i]:.2f},{B[i]:.2f},{'.' if i % 4 == 1 else 'N/A' if i % 4 == 3 else int(1 + A[i] // 20)}"

    return "a.csv", lines("x1,x2,y", row).encode()


def chemistry():
    def row(i):
        y = "" if i % 2 else f"{A[i] * 2:.2e}"
        return f"{A[i] * 1e-6:.3E},{B[i]:.2f}±0.1,{i % 60}-{i % 60 + 5},{y}"

    return "a.csv", lines("concentration,uncertain,range,y", row).encode()


def cars():
    def row(i):
        words = "rusty old car" if B[i] > 10 else "shiny new one"
        km, value = "" if i % 3 else int(A[i] * 1000), -999 if i % 2 else round(1000 * B[i])
        return f'"{words} with {i} extras, as is",{km},{value}'

    return "a.csv", lines("comment,km,y", row).encode()


@pytest.mark.parametrize(
    ("make", "options", "said"),
    [
        (
            laboratory,
            "",
            ["'Blei mg/l': 8 cells were read as the limit", "'n.b.' (line 35)", "'7,3 *' (line 7)"],
        ),
        (survey, "--task regression", ["'age' holds 999 (6 cells)"]),
        (sensor, "", ["'ERR' (lines 9, 49 and 89)", "'temp' holds 32767 (3 cells)"]),
        (
            bank,
            "",
            ["brackets mean minus", "'unknown' (4) were taken as labels", "--missing unknown"],
        ),
        (codes, "", ["Left out: 'id' (identifier), 'empty' (empty), 'constant' (constant)"]),
        (nested, "", ["Left out: 'id' (identifier)"]),
        (orders, "", ["The table is in sheet 'Data 2024'"]),
        (orders, "--sheet 2", ["'note': 1 formula has no value stored and is missing"]),
        (stars, "", 1),
        (stars, "--missing .", ["'N/A' (30) were taken as empty"]),
        (
            chemistry,
            "",
            [
                "'uncertain': 120 cells were read as the number in each",
                "'range': 120 of 120 cells, such as",
            ],
        ),
        (cars, "", 1),
        (cars, "--missing=-999", ["60 of 120 cells of 'y' filled (numbers"]),
    ],
)
def test_nothing_is_silently_wrong(make, options, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, content = make()
    if content is not None:
        Path(name).write_bytes(content)
    result = CliRunner().invoke(
        app, ["fill", name, "--target", "y", "--method", "ridge", *options.split()]
    )
    if said == 1:
        assert result.exit_code == 1
        sentence = result.stderr.splitlines()[-1]
        assert "--missing" in sentence or "--sheet 'Data 2024'" in sentence
        return
    assert result.exit_code == 0, result.output
    for words in said:
        assert words in result.stdout
    assert "hardly better" not in result.stdout


@pytest.mark.parametrize("cell", ["31.02.2020", "soon"])
def test_one_cell_that_is_no_date(cell):
    """A column of dates stays one; the cell is missing, and named with its row."""
    days = [f"{1 + k % 28:02d}.{1 + k % 12:02d}.2020" for k in range(60)]
    days[22] = cell
    found = vectorize(pd.DataFrame({"day": days, "y": 1.0}), "y")
    assert found.columns.set_index("name").loc["day", "kind"] == "date"
    assert texts(found.notes) == [f"'day': taken as missing, since not a date: {cell!r} (row 23)."]
    assert np.isfinite(found.encoder.transform(pd.DataFrame({"day": [cell, "03.04.2020"]}))).all()
