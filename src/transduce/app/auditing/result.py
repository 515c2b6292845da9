"""What an audit found: statements, tables, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from transduce.app.auditing.question import AuditQuestion
from transduce.app.auditing.reading import AuditColumns
from transduce.app.auditing.suspects import Suspects
from transduce.app.report.jsonable import rough_percent, to_json
from transduce.conformal.seen_labels import SeenLabels
from transduce.core.files import write_text
from transduce.core.types import ColumnName
from transduce.core.words import counted, on_command_line, option, percent
from transduce.population.audit import ALL_ROWS, Audit, NumberAudit, forecast_wrong
from transduce.population.means import estimate_mean
from transduce.population.sample import Sample

MORE_CHECKS = (50, 100, 300)
MOST_TRUTHS = 12  # lines of truth against prediction in the terminal
LARGEST_ROUNDING = 1.0  # row, by which estimates may seem to add up to another number
LARGEST_OF_SHARES = 0.005  # the same of shares

WHAT_IT_RESTS_ON = (
    "This holds if the checked rows were drawn at random and the predictions were made without "
    "their labels, however wrong the predictions are; each statement by itself."
)


@dataclass(frozen=True)
class Agreement:
    """How often two people who checked the same rows agree."""

    n_both: int
    n_differ: int

    @property
    def statement(self) -> str:
        """What that means for the labels themselves."""
        if self.n_both == 0:
            return "No row was checked by both people, so that it is not known how far they agree."
        share = self.n_differ / self.n_both
        if self.n_differ == 0:
            return (
                f"Two people checked the same {counted(self.n_both, 'row')} and agree at all of "
                "them."
            )
        return (
            f"Two people checked the same {counted(self.n_both, 'row')} and differ at "
            f"{self.n_differ:,} of them ({100 * share:.1f} %): the checks are not certain "
            "themselves. Every row at which they differ counts as wrong here."
        )


def way_out_of_seen() -> str:
    """Return what to do where the predictor may have seen the labels."""
    # In `fill` a design says which rows were seen; `audit` has an option for it.
    seen = option("seen") if on_command_line() else "the option seen"
    return f"Name the rows that it has seen with {seen}, or check rows that it has not."


@dataclass(frozen=True, eq=False)
class AuditResult:
    """What checked rows say of predictions that were made elsewhere.

    Attributes
    ----------
    question : AuditQuestion
    columns : AuditColumns
        What was read.
    audits : dict
        An `Audit` (or `NumberAudit`) for each column of groups, and one without groups under None.
    agreement : Agreement or None
        Of two people who checked the same rows.
    suspects : Suspects or None
        Rows that are most likely wrong.
    seen_labels : SeenLabels
        Whether the predictor seems to have seen the labels.
    source : str
        Where the table came from.
    notes : list of str

    Examples
    --------
    >>> import pandas as pd
    >>> from transduce import audit
    >>> table = pd.DataFrame({"llm": ["a"] * 30, "gold": ["a"] * 20 + [None] * 10})
    >>> print(audit(table, "gold", "llm").statement)
    0 of the 20 checked predictions are wrong. With 95 % certainty at most 2 of the 10
    unchecked ones are (20 %); the estimate is 0.
    """

    question: AuditQuestion
    columns: AuditColumns
    audits: dict[ColumnName | None, Audit | NumberAudit]
    agreement: Agreement | None
    suspects: Suspects | None
    seen_labels: SeenLabels
    source: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def whole(self) -> Audit | NumberAudit:
        """The audit of all rows."""
        return self.audits[None]

    @property
    def wrong(self) -> pd.Series:
        """How many predictions are wrong among all rows: a line of `Audit.wrong`."""
        return self.whole.wrong.loc[ALL_ROWS]

    @property
    def share_wrong_at_most(self) -> float:
        """The largest share of unchecked predictions that may be wrong, with the certainty."""
        return float(self.wrong["at_most"]) / max(float(self.wrong["n_unchecked"]), 1.0)

    def shows_at_most(self, share: float) -> bool:
        """Return whether it is shown that at most this share of the unchecked ones are wrong.

        Where every row was checked, the share that was found wrong must not exceed it.
        """
        line = self.wrong
        if line["n_unchecked"]:
            return self.share_wrong_at_most <= share
        return bool(line["n_wrong"] <= share * line["n_rows"])

    def verdict(self, share: float) -> str:
        """Return in a sentence whether a claim of `shows_at_most` is shown."""
        verdict = "is shown" if self.shows_at_most(share) else "is not shown"
        which = "the unchecked predictions" if self.wrong["n_unchecked"] else "the predictions"
        return f"That at most {percent(share)} of {which} are wrong {verdict}."

    @cached_property
    def statement(self) -> str:
        """How many of the unchecked predictions are wrong."""
        line = self.wrong
        certainty = percent(self.question.certainty)
        n_unchecked = int(line["n_unchecked"])
        n_doubtful = int(line["n_doubtful"])
        n_wrong = int(line["n_wrong"])
        n_checked = int(line["n_checked"])
        checked = f"{n_wrong:,} of the {n_checked:,} checked predictions"
        if n_checked == 1:
            checked = f"{n_wrong} of 1 checked predictions"
        checked += f" {_verb(n_wrong)} {self._what_is_wrong}."
        if n_unchecked == 0:
            return f"{checked} Every row was checked."
        if n_doubtful:
            label = "a label" if self.question.second is None else "an agreed label"
            checked += (
                f" {counted(n_doubtful, 'drawn row')} without {label} {_verb(n_doubtful)} taken to "
                "be wrong."
            )
        at_most = int(line["at_most"])
        return (
            f"{checked} With {certainty} certainty at most {at_most:,} of the {n_unchecked:,} "
            f"unchecked ones are ({rough_percent(self.share_wrong_at_most)}); the estimate is "
            f"{line['estimate']:,.0f}."
        )

    @property
    def _what_is_wrong(self) -> str:
        if not self.columns.numeric:
            return "wrong"
        tolerance = f"{self.question.tolerance:g}"
        if self.question.relative:
            tolerance = percent(float(self.question.tolerance or 0.0))
        return f"off by more than {tolerance}"

    @property
    def shares(self) -> pd.DataFrame | None:
        """The share of every true class among all rows; None of numbers."""
        if isinstance(self.whole, Audit):
            return self.whole.shares
        return None

    @cached_property
    def mean(self) -> pd.DataFrame | None:
        """The mean of the true numbers over all rows; None of classes."""
        if not self.columns.numeric or not np.isfinite(self.columns.predictions).all():
            return None
        if np.isinf(self.columns.truth).any():
            return None
        strata = None
        if self.columns.strata is not None:
            strata = pd.factorize(self.columns.strata)[0]
        drawn = self.columns.drawn
        checked = self.columns.checked
        later = None
        if self.columns.drawn_from is not None:
            later = self.columns.drawn_from & checked & ~drawn
        sample = Sample(drawn & checked, strata=strata, lost=drawn & ~checked, later=later)
        return estimate_mean(
            self.columns.truth,
            self.columns.predictions,
            confidence=self.question.certainty,
            sample=sample,
        )

    @cached_property
    def forecast(self) -> pd.DataFrame:
        """What more checks are expected to bring: the bound on wrong predictions."""
        lines = forecast_wrong(self.whole.rows, MORE_CHECKS, self.question.certainty)
        return lines.reset_index()

    @cached_property
    def suspect_rows(self) -> pd.DataFrame:
        """The unchecked rows that are most likely wrong: position, prediction, chance."""
        if self.suspects is None:
            return pd.DataFrame({"row": [], "predicted": [], "chance": []})
        rows = self.suspects.rows
        return pd.DataFrame(
            {
                "row": rows + 1,
                "predicted": self.columns.predictions[rows],
                "chance": self.suspects.chance,
            }
        )

    @property
    def what_more_checks_bring(self) -> str:
        """What the bound is expected to be after more checks, in a sentence."""
        if not self.forecast["n_unchecked"].iloc[0]:
            return "No row is left to be checked."
        parts = [
            f"after {line.more:,} more checks at most {line.at_most:,} of the {line.n_unchecked:,} "
            f"rows that are left ({rough_percent(line.share)})"
            for line in self.forecast.itertuples()
            if line.n_unchecked
        ]
        if not parts:
            return f"With {MORE_CHECKS[0]} more checks every row is checked."
        return f"At the present rate of errors these are wrong: {', '.join(parts)}."

    @property
    def on_parts(self) -> str:
        """Why estimates of parts do not add up to that of all rows, in a sentence; "" if they do.

        Each is from the checks of its part alone, whose frequency differs from part to part.
        """
        of_all = float(self.wrong["estimate"])
        parts = [lines.wrong.drop(index=ALL_ROWS) for lines in self.audits.values()]
        counts = [frame["estimate"] for frame in parts if len(frame)]
        shares = []
        for audit in self.audits.values():
            if isinstance(audit, Audit):
                counts.append(audit.by_prediction["estimate"])
                shares += [audit.shares, *audit.group_shares.values()]
        add_up = all(abs(column.sum() - of_all) < LARGEST_ROUNDING for column in counts)
        are_whole = all(abs(frame["estimate"].sum() - 1.0) < LARGEST_OF_SHARES for frame in shares)
        if add_up and are_whole:
            return ""
        return (
            "Each estimate is from the checks of its own part, and some parts were checked more "
            "often than others: estimates of parts need not add up to that of all rows, nor the "
            "shares of all classes to 100 %."
        )

    def tables(self) -> list[tuple[str, pd.DataFrame]]:
        """Return the tables that a terminal shows, each with its title."""
        tables = []
        audit = self.whole
        if isinstance(audit, Audit):
            tables.append(("Wrong, by what was predicted", _wrong_table(audit.by_prediction)))
            tables.append(_truth_table(audit))
        for name, grouped in self.audits.items():
            if name is not None:
                groups = grouped.wrong.drop(index=ALL_ROWS)
                tables.append((f"Wrong, by {name}", _wrong_table(groups)))
        if isinstance(audit, Audit):
            tables.append(("True shares of all rows", _share_table(audit.shares)))
            for name, grouped in self.audits.items():
                if name is not None and isinstance(grouped, Audit):
                    parts = {
                        f"{group}: {label}": line
                        for group, shares in grouped.group_shares.items()
                        for label, line in shares.iterrows()
                    }
                    frame = pd.DataFrame(list(parts.values()), index=list(parts))
                    tables.append((f"True shares, by {name}", _share_table(frame)))
        if self.mean is not None:
            line = self.mean[["estimate", "lower", "upper", "kind"]]
            tables.append(("Mean of the true numbers", line.reset_index(drop=True)))
        if len(self.suspect_rows):
            tables.append(("Rows that are most likely wrong", self.suspect_rows.head(5)))
        return tables

    @property
    def warnings(self) -> list[str]:
        """What speaks against the statements."""
        if not self.seen_labels.worse_elsewhere:
            return []
        return [self.seen_labels.describe(way_out_of_seen())]

    def as_json(self) -> dict[str, object]:
        """Return every number of the audit as plain values."""
        content: dict[str, object] = {
            "source": self.source,
            "target": str(self.question.target),
            "predictions": [str(name) for name in self.question.predictions],
            "certainty": self.question.certainty,
            "rests_on": WHAT_IT_RESTS_ON,
            "statement": self.statement,
            "notes": [*self.warnings, *self.notes],
            "on_parts": self.on_parts,
            "forecast": self.forecast.to_dict("records"),
            "suspects": self.suspect_rows.to_dict("records"),
            **_statements(self.whole, ALL_ROWS),
        }
        if self.mean is not None:
            content["mean"] = self.mean.iloc[0].to_dict()
        if self.agreement is not None:
            content["agreement"] = {
                "both": self.agreement.n_both,
                "differ": self.agreement.n_differ,
                "statement": self.agreement.statement,
            }
        content["by"] = {
            str(name): {
                str(group): _statements(audit, group)
                for group in audit.wrong.index
                if group != ALL_ROWS
            }
            for name, audit in self.audits.items()
            if name is not None
        }
        return dict(to_json(content))

    def write_json(
        self,
        path: str | Path,
        *,
        force: bool = False,
        like: Iterable[str | Path] = (),
    ) -> None:
        """Write every number to a file."""
        text = json.dumps(self.as_json(), ensure_ascii=False, indent=2)
        write_text(path, text + "\n", force=force, like=like)

    def __repr__(self) -> str:
        return f"AuditResult: {self.statement}"


def _wrong_table(lines: pd.DataFrame) -> pd.DataFrame:
    """Return lines of wrong rows with the words that people read."""
    return pd.DataFrame(
        {
            "": [str(name) for name in lines.index],
            "rows": lines["n_rows"].astype(int).to_numpy(),
            "checked": lines["n_checked"].astype(int).to_numpy(),
            "wrong": lines["n_wrong"].astype(int).to_numpy(),
            "unchecked": lines["n_unchecked"].astype(int).to_numpy(),
            "wrong, estimated": lines["estimate"].round().to_numpy(),
            "wrong, at most": lines["at_most"].astype(int).to_numpy(),
        }
    )


def _truth_table(audit: Audit) -> tuple[str, pd.DataFrame]:
    """Return what each prediction turned out to be, with its title; of many classes the errors."""
    lines = audit.confusion
    found = lines[lines["n_found"] > 0]
    title = "Truth against prediction: shares of the rows with each prediction"
    if len(found) > MOST_TRUTHS:
        title = "Truth against prediction: the most frequent errors"
        sizes = audit.by_prediction["n_rows"].loc[found["predicted"]].to_numpy()
        n_expected = (found["estimate"] * sizes).where(found["predicted"] != found["true"], 0.0)
        largest = n_expected.sort_values(ascending=False, kind="stable").head(MOST_TRUTHS)
        found = found.loc[largest.index[largest > 0.0]]
    table = pd.DataFrame(
        {
            "predicted": [str(name) for name in found["predicted"]],
            "true": [str(name) for name in found["true"]],
            "found": found["n_found"].to_numpy(),
            "of checked": found["n_checked"].to_numpy(),
            **_share_columns(found),
        }
    )
    return title, table


def _share_table(lines: pd.DataFrame) -> pd.DataFrame:
    """Return shares with the words that people read."""
    return pd.DataFrame(
        {
            "class": [str(name) for name in lines.index],
            **_share_columns(lines),
        }
    )


def _share_columns(lines: pd.DataFrame) -> dict[str, list[str]]:
    """Return shares and the ends of their intervals as texts."""
    names = {"share": "estimate", "from": "lower", "to": "upper"}
    return {word: [f"{100 * share:.1f} %" for share in lines[name]] for word, name in names.items()}


def _verb(number: int) -> str:
    return "is" if number == 1 else "are"


def _statements(audit: Audit | NumberAudit, group: object) -> dict[str, object]:
    """Return what an audit says of a group of rows, as plain values."""
    line = audit.wrong.loc[group]
    wrong: dict[str, object] = {
        "n_rows": int(line["n_rows"]),
        "n_checked": int(line["n_checked"]),
        "n_wrong": int(line["n_wrong"]),
        "n_unchecked": int(line["n_unchecked"]),
        "n_doubtful": int(line["n_doubtful"]),
        "estimate": float(line["estimate"]),
        "at_most": int(line["at_most"]),
        "certainty": audit.certainty,
    }
    content: dict[str, object] = {"wrong": wrong}
    if isinstance(audit, NumberAudit):
        wrong["tolerance"] = audit.tolerance
        wrong["relative"] = audit.relative
        content["off_by"] = audit.off_by if group == ALL_ROWS else audit.group_off_by[group]
        return content
    if group == ALL_ROWS:
        shares = audit.shares
    else:
        shares = audit.group_shares[group]
    content["shares"] = shares.rename(index=str).to_dict("index")
    if group == ALL_ROWS:
        content["by_prediction"] = audit.by_prediction.rename(index=str).to_dict("index")
        content["confusion"] = audit.confusion.to_dict("records")
    return content
