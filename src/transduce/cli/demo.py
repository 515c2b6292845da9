"""Bundled real tables whose labels are known: hidden, filled, and compared with the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from transduce.core.words import percent

if TYPE_CHECKING:  # so that the help, which lists the tables, is quick
    import pandas as pd

    from transduce.filling.result import FillResult

# The column with holes, how many labels stay, and what the table is about.
TABLES = {
    "diabetes": ("progression", 150, "442 patients, ten measurements: how far the disease goes in a year"),
    "houses": ("price", 150, "400 districts of California in 1990, eight measurements: what a house costs"),
    "breast-cancer": ("diagnosis", 100, "569 tumours, thirty measurements: malignant or benign"),
    "wine": ("cultivar", 60, "178 wines, thirteen measurements: which of three growers"),
    "digits": ("digit", 200, "1,797 images of 64 pixels: which of ten digits"),
}


def demo_table(name: str, seed: int = 0) -> tuple[pd.DataFrame, str, pd.Series]:
    """Return a bundled table with holes, the column they are in, and that column without them."""
    import numpy as np
    from sklearn import datasets

    from transduce.datasets import load_houses

    if name not in TABLES:
        raise ValueError(f"There is no demo {name!r}: choose one of {', '.join(map(repr, TABLES))}.")
    target, n_labels, _ = TABLES[name]
    if name == "houses":
        table, truth = load_houses()
        return table, target, truth
    load = getattr(datasets, f"load_{name.replace('-', '_')}")
    bundle = load(as_frame=True, **({"scaled": False} if name == "diabetes" else {}))
    table, truth = bundle.data.copy(), bundle.target.rename(target)
    if name in ("breast-cancer", "wine"):
        truth = truth.map(dict(enumerate(map(str, bundle.target_names)))).astype(object)
    hidden = np.random.default_rng(seed).permutation(len(table))[n_labels:]
    table[target] = truth if name == "diabetes" else truth.astype(object)
    table.loc[hidden, target] = np.nan if name == "diabetes" else None
    return table, target, truth


@dataclass(frozen=True)
class Outcome:
    """What was guaranteed about a filled column, and what was observed."""

    n_unlabelled: int  # cells filled
    n_outside: int  # how many of their true values are outside their interval or set
    confidence: float
    certainty: float
    at_most: int | None  # bound on how many are outside, with that certainty
    right: float  # R² of the values, or share of right classes
    task: str

    def __str__(self) -> str:
        share = 100 * (1 - self.n_outside / self.n_unlabelled)
        what = "intervals" if self.task == "regression" else "sets"
        least, sure = percent(self.confidence), percent(self.certainty)
        average = f"at least {least} on average over many such tables, and less in some"
        lines = [f"Inside their {what}: {share:.1f} % of the hidden labels. Guaranteed: {average}."]
        if self.at_most is not None:
            most = f"at most {self.at_most} of {self.n_unlabelled}, with {sure} certainty"
            lines.append(f"Outside their {what}: {self.n_outside}. Guaranteed: {most}.")
        if self.task == "regression":
            lines.append(f"The values explain {100 * self.right:.0f} % of the variance of the hidden labels.")
        else:
            lines.append(f"{100 * self.right:.1f} % of the answers are right.")
        return "\n".join(lines)


def compare_with_truth(filled: FillResult, truth: pd.Series) -> Outcome:
    """Return what was guaranteed and what was observed."""
    answer, outside = filled.answer, filled.guarantee.outside
    true = truth.to_numpy()[answer.rows]
    if filled.task == "regression":
        right = 1.0 - float(((true - answer.values) ** 2).mean() / true.var())
        lower, upper = (filled.frame[f"{filled.target}_{end}"].to_numpy(float) for end in ("lower", "upper"))
        inside = (lower[answer.rows] <= true) & (true <= upper[answer.rows])
    else:
        right = float((true == answer.values).mean())
        inside = answer.contains(true)
    return Outcome(
        n_unlabelled=len(true),
        n_outside=int((~inside).sum()),
        confidence=filled.confidence,
        certainty=filled.certainty,
        at_most=None if outside is None else outside.at_most,
        right=right,
        task=filled.task,
    )
