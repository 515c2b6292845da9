"""Fit AutoGluon for 60 seconds to a table in a folder and leave its answers there; `race_mixed.py` calls this.

    python benchmarks/autogluon_answers.py FOLDER

AutoGluon needs other versions of some packages than the project does, so it runs in an environment of its own, and this
script imports nothing of ours. The folder holds ``table.json`` with ``columns``, lists of cells by name, and ``labels``
of the first rows; ``answers.json`` will hold those of the others.
"""

import json
import sys
from pathlib import Path

import pandas as pd
from autogluon.tabular import TabularPredictor

SECONDS = 60
TARGET = "the label"


def main() -> None:
    folder = Path(sys.argv[1])
    table = json.loads((folder / "table.json").read_text(encoding="utf-8"))
    frame, labels = pd.DataFrame(table["columns"]), table["labels"]
    model = TabularPredictor(TARGET, path=str(folder / "models"), verbosity=0)
    model.fit(frame[: len(labels)].assign(**{TARGET: labels}), time_limit=SECONDS)
    answers = model.predict(frame[len(labels) :]).tolist()
    (folder / "answers.json").write_text(json.dumps(answers), encoding="utf-8")


if __name__ == "__main__":
    main()
