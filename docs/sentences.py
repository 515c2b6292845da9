"""Print every sentence that `fill`, `answer`, `draw`, `demo`, the report and the labelling page say, each once.

    python docs/sentences.py

Small tables of many kinds are filled with the command line itself; sentences that differ only in numbers or in names in
quotation marks count as one. The sentences of the page that a browser writes are read from its files. Read them aloud.
"""

from __future__ import annotations

import itertools
import os
import re
import tempfile
import warnings
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

import transduce
from transduce.app.cli.app import app
from transduce.app.labelling import Session, SessionSettings
from transduce.app.labelling.sentences import certificate_text

STATIC = Path(transduce.__file__).parent / "app" / "page" / "static"
QUICK = "--method ridge"
# Which table, with which options: every design, each kind of label, and what may go wrong.
FILLS = {
    "numbers": ("numbers", QUICK),
    "numbers, for the column": (
        "numbers",
        f"{QUICK} --guarantee column --tolerance 1 --reject-share 0.1",
    ),
    "numbers, by a blend": ("numbers", "--budget 20"),
    "classes": ("classes", QUICK),
    "classes, within classes": (
        "classes",
        f"{QUICK} --label-conditional --guarantee column",
    ),
    "classes, for the column": (
        "classes",
        f"{QUICK} --guarantee column --probabilities",
    ),
    "one class is rare": ("rare", QUICK),
    "few labels": ("few", QUICK),
    "columns that tell nothing": ("noise", f"{QUICK} --guarantee column"),
    "rows differ": ("shifted", QUICK),
    "rows differ, not weighted": ("shifted", f"{QUICK} --shift ignore"),
    "rows have nothing in common": ("apart", QUICK),
    "labels drawn at random": ("drawn", f"{QUICK} --random-labels drawn"),
    "known probabilities": ("numbers", f"{QUICK} --sampling-probability p"),
    "groups": ("grouped", f"{QUICK} --groups group"),
    "within categories": ("numbers", f"{QUICK} --within kind --guarantee column"),
    "along an order": ("numbers", f"{QUICK} --order time"),
    "an order that matters": ("ordered", f"{QUICK} --order time"),
    "odds that may be off": (
        "numbers",
        f"{QUICK} --sensitivity 1.5 --guarantee column",
    ),
    "labels chosen by class": ("classes", f"{QUICK} --labels-by-class"),
    "given shares of classes": ("classes", f"{QUICK} --class-shares high=0.3,low=0.7"),
    "many classes": ("many classes", QUICK),
    "labels that are limits": ("limits", QUICK),
    "drawn rows without a label": ("drawn empty", f"{QUICK} --random-labels drawn"),
    "drawn rows of classes without a label": (
        "drawn classes",
        f"{QUICK} --random-labels drawn",
    ),
    "few labels of each class": (
        "many classes",
        f"{QUICK} --label-conditional --guarantee column",
    ),
    "a class with one label": ("one label", f"{QUICK} --labels-by-class"),
    "a fit to a sample": ("many", f"{QUICK} --sample 100"),
}


def make_table(kind: str) -> tuple[pd.DataFrame, pd.Series]:
    """Return a table of a kind with an empty column y, and what y is where it has a label."""
    rng, n = np.random.default_rng(0), 700 if kind == "many" else 160
    frame = pd.DataFrame(rng.normal(size=(n, 2)).round(3), columns=["a", "b"])
    frame["kind"], frame["group"] = (
        rng.choice(["u", "v"], n),
        [f"g{k}" for k in rng.integers(0, 30, n)],
    )
    frame["time"], frame["p"] = np.arange(n), 0.5
    noise = rng.normal(size=n) * (
        1.0 + (np.arange(n) / 10.0 if kind == "ordered" else 0.0)
    )
    y = pd.Series(
        (10.0 + (0.0 if kind == "noise" else 3.0) * frame["a"] + noise).round(2)
    )
    if kind in ("classes", "rare", "drawn classes", "one label"):
        y = pd.Series(
            np.where(y > (12.5 if kind == "rare" else 10.0), "high", "low"),
            dtype=object,
        )
    known = rng.random(n) < (0.06 if kind == "few" else 0.5)
    if kind in ("shifted", "apart"):
        known = rng.random(n) < 1 / (
            1 + np.exp((40.0 if kind == "apart" else 2.0) * frame["a"])
        )
    if kind == "grouped":
        known = frame["group"].str[1:].astype(int).to_numpy() < 18
    if kind == "ordered":
        known = np.arange(n) < 80
    if kind == "many classes":
        y = pd.Series([f"c{min(k, 30)}" for k in rng.zipf(1.5, n)], dtype=object)
        known = rng.random(n) < 0.2
    if kind == "limits":
        y = y.map(str).where(y > 8.0, "<8.0")
    if kind == "one label":
        known &= (
            (y == "low") | (np.arange(n) == np.flatnonzero(known & (y == "high"))[0])
        ).to_numpy()
    if kind.startswith("drawn"):
        frame["drawn"] = known & (rng.random(n) < 0.5)
        lost = {"drawn empty": 0.3, "drawn classes": 0.05}.get(kind, 0.0)
        known = known & ~(frame["drawn"] & (rng.random(n) < lost)).to_numpy()
    return frame.assign(y=y.where(known)), y


def said_by(*words: str) -> str:
    """Return what a command prints."""
    found = CliRunner().invoke(app, list(words))
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found.output


def fills() -> Iterator[tuple[str, str]]:
    """Yield where something is said, and what, for every table: the terminal's words, and the report's."""
    for name, (kind, options) in FILLS.items():
        frame, _ = make_table(kind)
        frame.to_csv("t.csv", index=False)
        words = [
            "fill",
            "t.csv",
            "--target",
            "y",
            "--report",
            "t.html",
            "--force",
            *options.split(),
        ]
        yield f"fill: {name}", said_by(*words)
        yield f"report: {name}", visible(Path("t.html").read_text(encoding="utf-8"))


def other_commands() -> Iterator[tuple[str, str]]:
    """Yield the words of later rows, of draws and of the demo."""
    frame, _ = make_table("numbers")
    frame.to_csv("t.csv", index=False)
    yield (
        "save",
        said_by(
            "fill",
            "t.csv",
            "--target",
            "y",
            *QUICK.split(),
            "--save",
            "t.transduce",
            "--force",
        ),
    )
    later = {
        "alike": frame,
        "few": frame[:3],
        "shifted": frame.assign(a=frame["a"] + 2.0),
    }
    for name, rows in later.items():
        rows.drop(columns="y").to_csv("later.csv", index=False)
        yield (
            f"answer: {name}",
            said_by("answer", "t.transduce", "later.csv", "--force"),
        )
    yield "draw", said_by("draw", "t.csv", "--target", "y", "--number", "5")
    for name in ("diabetes", "wine"):
        yield f"demo: {name}", said_by("demo", name, *QUICK.split())


def page() -> Iterator[tuple[str, str]]:
    """Yield the words of the labelling page: of its certificates, and of its files."""
    frame, truth = make_table("classes")
    frame["y"] = None
    session = Session(
        frame, "y", classes=["high", "low"], settings=SessionSettings(seed=1)
    )
    for row in range(12):
        session.answer(truth[row], row=row)
    yield (
        "page: before any draw",
        certificate_text(session.certificate(), "high", "t.csv", ""),
    )
    session.freeze()
    session.plan_draws(9)
    for judged in range(30):
        proposal = session.propose("audit")
        if judged in (0, 3, 12, 29):
            yield (
                "page: certificates",
                certificate_text(session.certificate(), "high", "t.csv", ""),
            )
        if proposal is not None:
            session.answer(truth[proposal.row])
    for path in sorted(STATIC.glob("*.js")):
        texts = re.findall(
            r"[\"`]([A-Z][^\"`]*[.!?])[\"`]", path.read_text(encoding="utf-8")
        )
        yield f"page: {path.name}", " ".join(texts)
    yield (
        "page: index.html",
        visible((STATIC / "index.html").read_text(encoding="utf-8")),
    )


def visible(html: str) -> str:
    """Return what a reader sees of a page, without plots and tables."""
    for part in ("script", "style", "svg", "table", "head", "pre", "nav"):
        html = re.sub(rf"<{part}\b.*?</{part}>", " ", html, flags=re.DOTALL)
    ended = re.sub(r"</(p|li|h\d|dd|dt|strong|summary|figcaption)>", "\n", html)
    return unescape(re.sub(r"<[^>]*>", " ", ended))


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text; lines of tables and progress are left out."""
    for line in text.replace("\u00a0", " ").splitlines():
        if not re.search(r"[┃│┏━└]|\d %.*left|^\W*$", line):
            yield from filter(
                None, re.split(r"(?<=[.!?:]) +(?=[A-Z“‘])", " ".join(line.split()))
            )


def collect() -> Iterator[tuple[str, str]]:
    """Yield where each sentence is said first, and the sentence."""
    found: set[str] = set()
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            for where, text in itertools.chain(other_commands(), page(), fills()):
                for one in sentences(text):
                    shape = re.sub(r"'[^']*'|“[^”]*”|[−-]?\d[\d,.]*", "#", one)
                    shape = re.sub(r"#(, #)*( and #)?", "#", shape)
                    if shape not in found:
                        yield where, one
                    found.add(shape)
        finally:
            os.chdir(here)


def main() -> None:
    """Print the sentences, under where each is said first."""
    for where, group in itertools.groupby(collect(), key=lambda pair: pair[0]):
        print(f"\n{where}", *(f"  {one}" for _, one in group), sep="\n", flush=True)


if __name__ == "__main__":
    main()
