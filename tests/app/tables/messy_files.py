"""Files as people keep them, made at random from a table that is known: what must be read is known."""

from __future__ import annotations

import csv
import datetime as dt
import io
import random
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import openpyxl

TITLES = (
    ["Patient list 2024"],
    ["Export from LabSys v3.2"],
    ["Date: 03.01.2024"],
    ["Ward", "3"],
    ["Study:", "LIPID-7"],
    ["Created", "03.01.2024"],
    ["Number of patients", "37"],
    ["Responsible: Dr. Müller, Tel. 0341 / 12345"],
    ["Lipids in cohort A; second visit"],
    [None, "Results"],
    ["Period", "01.01.2023", "31.12.2024"],
)
FOOTNOTES = (
    ["* below limit of detection"],
    ["Source: lab information system"],
    ["1) measured twice"],
    ["Quelle: KIS, Stand 03.01.2024"],
    ["Signature: ________"],
    ["End of report"],
    ["Legend: m = male, f = female"],
    ["(c) University Hospital"],
    ["Datum:", "03.01.2024", None, "Unterschrift:"],
)
REMARKS = ("", "", "", "ok", "see file", "lost; again", '"quoted"', "two, words", "Bitte prüfen")
GROUP_SIGNS = ("", "sign", " ", "\u00a0", "\u202f", "'")
UNITS = {"Age": "years", "Hb": "g/dL"}


@dataclass
class Messy:
    """A file, what it is made of, and what must be read from it."""

    seed: int
    content: bytes = b""
    ending: str = "csv"
    names: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    target: str = ""
    labels: list[float] = field(default_factory=list)  # NaN where there is none
    made_of: list[str] = field(default_factory=list)

    def write(self, folder: Path) -> Path:
        path = folder / f"messy{self.seed}.{self.ending}"
        path.write_bytes(self.content)
        return path


class Writer:
    """How one file writes numbers and dates."""

    def __init__(self, pick: random.Random, *, sheet: bool) -> None:
        self.sheet = sheet
        self.decimal = pick.choice(".,")
        self.date = pick.choice(("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%d.%m.%y"))
        self.group = pick.choice(GROUP_SIGNS)

    def number(self, value: float, digits: int) -> str | float:
        if self.sheet:
            return float(value)
        group = self.group
        if group == "sign":
            group = "," if self.decimal == "." else "."
        whole, _, rest = f"{value:,.{digits}f}".partition(".")
        whole = whole.replace(",", group)
        return whole + (self.decimal + rest if rest else "")

    def day(self, value: dt.datetime) -> str | dt.datetime:
        return value if self.sheet else value.strftime(self.date)


def make(seed: int) -> Messy:
    """Return one file; the same seed makes the same."""
    pick = random.Random(seed)
    draw = np.random.default_rng(seed)
    kind = pick.choice(("csv", "csv", "csv", "xlsx", "xlsx", "tsv", "txt"))
    writer = Writer(pick, sheet=kind == "xlsx")
    messy = Messy(seed, ending=kind)
    columns, digits = _columns(messy, pick, draw, writer)
    body = [list(row) for row in zip(*columns.values(), strict=True)]
    header = _header(messy, pick, columns)
    below = _totals(messy, pick, draw, columns, writer, digits) + _footnotes(messy, pick)
    if pick.random() < 0.12 and len(body) > 10:
        messy.made_of.append("blank rows")
        for _ in range(pick.choice((1, 3))):
            body.insert(pick.randrange(3, len(body) - 3), [])
    rows = [*_titles(messy, pick), *header, *body, *below]
    left = pick.random() < 0.12
    right = pick.choice((0, 0, 0, 1, 3))
    rows = [[None] * left + row + [None] * right for row in rows]
    if kind == "xlsx":
        messy.content = _workbook(messy, rows, pick)
    else:
        messy.content = _text(messy, rows, pick, writer.decimal)
    return messy


def _columns(messy, pick, draw, writer):
    n = pick.choice((8, 12, 20, 37, 60, 150))
    scale = pick.choice((1, 1, 1, 30, 2000, 50000))
    center = pick.choice((4, 4, 4, 0))
    # Three digits behind a sign may be decimals or thousands: that they are asked about is
    # another test.
    digits = pick.choice((1, 2))
    values = np.round(draw.normal(center, 1, n) * scale, digits)
    missing = draw.uniform(size=n) < pick.choice((0.1, 0.3, 0.6))
    if n - missing.sum() < 5 or not missing.any():
        missing = np.arange(n) % 3 == 0
    messy.target = pick.choice(
        ("LDL", "LDL (mmol/L)", "Preis [€]", "y", "LDL\nmmol/L", "Crea µmol/l")
    )
    messy.labels = np.where(missing, np.nan, values).tolist()
    messy.ids = pick.choice(
        (
            [f"P{i:03d}" for i in range(1, n + 1)],
            [str(i) for i in range(1, n + 1)],
            [f"2024-{i:04d}" for i in range(1, n + 1)],
            [str(100000 + 7 * i) for i in range(n)],
        )
    )
    days = [dt.datetime(2023, 1, 1) + dt.timedelta(int(k)) for k in draw.integers(0, 700, n)]
    labels = [
        None if gone else writer.number(value, digits)
        for value, gone in zip(values, missing, strict=True)
    ]
    whole = int if writer.sheet else str
    optional = {
        "Age": [whole(age) for age in draw.integers(18, 90, n)],
        "Sex": draw.choice(["m", "f"], n).tolist(),
        "Hb": [writer.number(value, 1) for value in draw.normal(13, 1.5, n).round(1)],
        "Visit": [writer.day(day) for day in days],
        "Ward": draw.choice(["ICU", "Station 3", "Ward B", "Amb."], n).tolist(),
    }
    kept = sorted(pick.sample(list(optional), pick.choice((2, 3, 4, 5))), key=list(optional).index)
    columns = {"ID": [int(i) if writer.sheet and i.isdigit() else i for i in messy.ids]}
    columns |= {name: optional[name] for name in kept}
    columns[messy.target] = labels
    if pick.random() < 0.5:
        columns["Note"] = [pick.choice(REMARKS) or None for _ in range(n)]
    messy.names = list(columns)
    return columns, digits


def _header(messy, pick, columns):
    names = list(columns)
    kind = pick.random()
    if kind < 0.15 and len(names) >= 4:
        messy.made_of.append("groups")
        cut = pick.randrange(2, len(names) - 1)
        groups = [None] * len(names)
        groups[0] = "Patient"
        groups[cut] = "Lab"
        messy.names = [
            f"{'Patient' if place < cut else 'Lab'} {name}" for place, name in enumerate(names)
        ]
        messy.target = messy.names[names.index(messy.target)]
        return [groups, names]
    if kind < 0.27:
        messy.made_of.append("units")
        return [
            names,
            [UNITS.get(name, "mmol/L" if name == messy.target else None) for name in names],
        ]
    if kind < 0.35:
        messy.made_of.append("a column without a name")
        messy.names[0] = "column 1"
        return [[None, *names[1:]]]
    return [names]


def _titles(messy, pick):
    kind = pick.random()
    if kind < 0.55:
        messy.made_of.append("titles")
        titles = [list(pick.choice(TITLES)) for _ in range(pick.choice((1, 1, 2, 3, 5)))]
        return titles + [[]] * (pick.random() < 0.6)
    return [[]] * pick.choice((0, 0, 0, 1, 2))


def _totals(messy, pick, draw, columns, writer, digits):
    known = np.array([label for label in messy.labels if not np.isnan(label)])

    def row(word, function):
        cells = dict.fromkeys(columns)
        cells["ID"] = word
        # An integer of three digits behind a comma would be another number.
        cells[_own_name(columns, messy)] = writer.number(float(function(known)), max(digits, 2))
        return list(cells.values())

    kind = pick.random()
    if kind < 0.2:
        word, function = pick.choice(
            (
                ("Mean", np.mean),
                ("Mittelwert", np.mean),
                ("Sum", sum),
                ("Summe", sum),
                ("Total", sum),
            )
        )
        messy.made_of.append("a total")
        return [[]] * (pick.random() < 0.3) + [row(word, function)]
    if kind < 0.3:
        messy.made_of.append("mean and SD")
        spread = row("SD", lambda values: np.std(values, ddof=1))
        return [[], row("Mean", np.mean), spread]
    if kind < 0.4:
        messy.made_of.append("a sum without a word")
        return [row(None, sum)]
    return []


def _own_name(columns, messy):
    """The target's name without that of its group."""
    return next(name for name in columns if messy.target.endswith(name) and name != "ID")


def _footnotes(messy, pick):
    if pick.random() < 0.3:
        messy.made_of.append("footnotes")
        notes = [list(pick.choice(FOOTNOTES)) for _ in range(pick.choice((1, 1, 2)))]
        return [[]] * (pick.random() < 0.5) + notes
    return [[]] * pick.choice((0, 0, 0, 2))


def _text(messy, rows, pick, decimal):
    delimiter = "\t" if messy.ending == "tsv" else pick.choice(",;;|\t")
    if decimal == "," and delimiter == ",":
        delimiter = ";"
    width = max(map(len, rows))
    as_wide = pick.random() < 0.6  # as a spreadsheet writes it
    buffer = io.StringIO()
    writer = csv.writer(
        buffer,
        delimiter=delimiter,
        lineterminator=pick.choice(("\n", "\r\n")),
        quoting=pick.choice((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL)),
    )
    for row in rows:
        cells = ["" if cell is None else cell for cell in row]
        if as_wide:
            cells += [""] * (width - len(cells))
        writer.writerow(cells if as_wide or any(cells) else [])
    text = buffer.getvalue()
    if delimiter == ";" and pick.random() < 0.15:
        text = f"sep=;\n{text}"
    encoding = pick.choice(("utf-8", "utf-8", "utf-8-sig", "cp1252", "utf-16"))
    messy.made_of += [repr(delimiter), repr(decimal), encoding]
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return text.encode("utf-8")


def _workbook(messy, rows, pick):
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    for row in rows:
        sheet.append(row)
    if pick.random() < 0.2:
        messy.made_of.append("a cover")
        cover = book.create_sheet("Info", pick.choice((0, 1)))
        for row in (["Study", "LIPID"], ["Author", "Meier"], ["Note", "Sheet 2 has the data"]):
            cover.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()
