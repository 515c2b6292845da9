"""Pages of a million answers: how long a request takes, from the first look to a search, by processor time.

    python benchmarks/page_rows.py [rows]

The table is made up, and so are its answers, which lie where a fill leaves them: what is measured is the page alone.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from transduce.app.page.preview import AnswerRows, Preview
from transduce.app.page.workspace import Choices

REQUESTS = {
    "the first page": {},
    "the same again": {},
    "a page in the middle": {"start": "{half}"},
    "sorted by value": {"sort": "value"},
    "sorted by value, the next page": {"sort": "value", "start": "25"},
    "sorted by a text": {"sort": "name"},
    "sorted by a text, the next page": {"sort": "name", "start": "25"},
    "a search for a word": {"search": "77777"},
    "another search": {"search": "12345"},
    "rows to trust": {"trust": "0.1", "tolerance": "1"},
    "rows to trust, another amount": {"trust": "0.1", "tolerance": "0.7"},
}


def made(folder: Path, n: int) -> AnswerRows:
    """Return answers for a table of n rows, half of which had a label."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"name": [f"row {i}" for i in range(2 * n)], "x": rng.normal(size=2 * n)})
    frame["y"] = np.where(np.arange(2 * n) % 2 == 0, np.nan, frame["x"])
    frame.to_parquet(folder / "table.parquet")
    value, width = rng.normal(size=n), np.sort(rng.random(n))[::-1]
    answers = pd.DataFrame({"row": 2 * rng.permutation(n), "status": "answered", "value": value})
    answers = answers.assign(low=value - width, high=value + width, width=2 * width, first=value)
    answers.assign(unsure=width).to_feather(folder / "answers.feather", compression="uncompressed")
    known = {"unsure": rng.random(2000), "answered": rng.normal(size=2000)}
    off = known["unsure"] * np.abs(rng.normal(size=2000))
    pd.DataFrame(known).assign(off=off).to_feather(folder / "judged.feather")
    brief = {"context": ["name", "x"], "relevance": None, "choices": {"target": "y", "ignore": []}}
    brief |= {"trust": {"why_not": ""}, "task": "regression"}
    (folder / "brief.json").write_text(json.dumps(brief))
    return AnswerRows(folder, Preview(folder / "table.parquet", Choices(target="y")))


def main(n: int) -> None:
    """Print how long each request takes."""
    with tempfile.TemporaryDirectory() as name:
        rows = made(Path(name), n)
        print(f"{n:,} answers")
        for words, asked in REQUESTS.items():
            began = time.process_time()
            found = rows.page({key: value.format(half=n // 2) for key, value in asked.items()})
            print(
                f"{words:<34} {1000 * (time.process_time() - began):8.1f} ms   {found['total']:>9,} rows"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
