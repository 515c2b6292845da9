"""Do more unlabelled rows help the moment-matched Gaussian process? Le and others (2006) expect it in their outlook.

    TRANSDUCE_DATA=folder python papers/le2006_unlabelled.py [--draws 2] [--cv]

Of each set 40 rows are labelled and 120 are answered, in fits that hold 12, 40 or all 120 of them; the same rows are
answered every time. Printed is the root mean squared error of the matched process over that of the same process
without matching, as the geometric mean over draws. Matched is with weight 1 and slack 0.01, so that the match counts
in every fit, or with `--cv` as cross-validation chooses, which takes some twenty times as long.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from paper_data import load_dataset

from transduce import TransductiveGPRegressor

SETS = ("boston", "gilgais", "ufc", "GAGurine", "engel", "geyser", "crabs", "heights", "cpus", "triazines")  # fmt: skip
N_LABELLED = 40
N_UNLABELLED = 120
NUMBERS = (12, 40, 120)  # unlabelled rows in one fit


def error_ratios(name: str, draw: int, settings: dict) -> dict[int, float]:
    """Return for each number of unlabelled rows the error with matching over that without."""
    data = load_dataset(name)
    X = data.encoded()
    y = data.y.to_numpy(float)
    order = np.random.default_rng([2006, draw]).permutation(len(y))[: N_LABELLED + N_UNLABELLED]
    labelled = order[:N_LABELLED]
    unlabelled = order[N_LABELLED:]
    ratios = {}
    for number in NUMBERS:
        matched_errors = []
        plain_errors = []
        for group in unlabelled.reshape(-1, number):
            rows = np.append(labelled, group)
            labels = np.append(y[labelled], np.full(number, np.nan))
            model = TransductiveGPRegressor(n_restarts=1, random_state=0, **settings)
            answer = model.fit(X[rows], labels).answer_
            matched_errors.append(answer.values - y[group])
            plain_errors.append(answer.inductive - y[group])
        matched = np.sqrt(np.mean(np.square(matched_errors)))
        plain = np.sqrt(np.mean(np.square(plain_errors)))
        ratios[number] = float(matched / plain)
    return ratios


def main() -> None:
    """Print the ratios of all sets, and their mean."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--cv", action="store_true")
    options = parser.parse_args()
    settings = {} if options.cv else {"matching": 1.0, "slack": 0.01}
    warnings.simplefilter("ignore")  # of bounds and far-off rows
    lines = {}
    for name in SETS:
        draws = [error_ratios(name, draw, settings) for draw in range(options.draws)]
        lines[name] = np.exp(np.log(pd.DataFrame(draws)).mean())
        print(f"{name}: {lines[name].round(3).to_dict()}", flush=True)
    table = pd.DataFrame(lines).T
    print(table.round(3).to_string())
    print("geometric mean:", np.exp(np.log(table).mean()).round(3).to_dict())


if __name__ == "__main__":
    main()
