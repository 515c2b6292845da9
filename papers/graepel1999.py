"""Bayesian transduction: error against rejection rate, after Graepel, Herbrich and Obermayer (1999).

    TRANSDUCE_DATA=folder python papers/graepel1999.py [--full]

Figure 2: random 60:40 splits of thyroid (kernel width 3) and heart (width 10), features standardised over all rows.
Rows whose answer is least confident are rejected: how often are the others wrong? Bayesian transduction (softness 0,
as in the paper) against the hard-margin support vector machine with its margin as confidence and the same kernel; and
Bayesian transduction with softness chosen by cross-validation, which the paper did not have. 100 splits as in the
paper, or the first 20 of them. Separators need not pass through the origin (bias 1), but for what is said of the part
below.

One ball: the same with the paper's single ball of 1,000 bounces, with and without a constant in the kernel (the paper
has none), the vote at threshold 1 and after ten times as many bounces; and how often the Bayes point, one separator,
gives the class of the vote.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from paper_data import load_dataset
from scipy.stats import wilcoxon
from sklearn.preprocessing import scale
from sklearn.svm import SVC
from study import BLUE, GREEN, GREY, RED, Study, main, summarise

from transduce import BayesianTransducer
from transduce.metrics import area_under_rejection_curve, rejection_curve

WIDTHS = {"thyroid": 3.0, "heart": 10.0}
BAYES, SOFT, SVM = "Bayesian", "Bayesian, softness by cv", "hard-margin SVM"
COLORS = {BAYES: BLUE, SOFT: GREEN, SVM: RED}
SHARES = np.arange(61) / 100
CURVE = [f"error_{round(100 * share)}" for share in SHARES]
# What the table shows: columns of the raw numbers by the table's names. The paper has one of these figures; the other
# two that it has are differences, and are in the note.
SHOWN = {f"{share} % rejected": f"error_{share}" for share in (0, 10, 20, 30, 40)}
SHOWN |= {"area": "area", "threshold 1, rejected": "rejected_1", "threshold 1, error": "error_at_1"}
PAPER = {(f"heart, {BAYES}", "threshold 1, error"): 16.4}
TARGETS = {"thyroid": 2.3, "heart": 16.4}


def run_split(name: str, split: int) -> list[dict]:
    """Return, for each method, the rejection curve of one split in per cent."""
    data = load_dataset(name)
    X, y = data.encoded(), (data.y > 0).to_numpy(int)
    unlabelled = np.random.default_rng(split).permutation(len(y)) >= int(0.6 * len(y))
    answers = {}
    for method, softness in ((BAYES, 0.0), (SOFT, "cv")):
        model = BayesianTransducer(width=WIDTHS[name], softness=softness, random_state=0)
        answer = model.fit(X, np.where(unlabelled, np.nan, y)).answer_
        answers[method] = (answer.values.astype(int), answer.confidence)
    rows = scale(X)
    svm = SVC(C=1e10, gamma=0.5 / WIDTHS[name] ** 2).fit(rows[~unlabelled], y[~unlabelled])
    margin = svm.decision_function(rows[unlabelled])
    answers[SVM] = ((margin > 0).astype(int), np.abs(margin))
    # The paper's threshold of 1 rejects every row on which the separators do not all agree; of the other methods'
    # rows it rejects as many.
    rejected = float(np.mean(answers[BAYES][1] < 1.0))
    return [
        {"method": method, **describe(y[unlabelled], *found, rejected)}
        for method, found in answers.items()
    ]


BALLS = {
    "one ball, 1,000 bounces": {"tolerance": 0.048, "bias": 1.0},
    "one ball, 1,000 bounces, no constant": {"tolerance": 0.048, "bias": 0.0},
    "one ball, 10,000 bounces": {"tolerance": 0.0151742713, "bias": 1.0},
}
ONE_BALL = {
    "error": "error",
    "rejected at 1": "rejected",
    "error at 1": "error_at_1",
    "Bayes point agrees": "agrees",
    "two balls differ": "differ",
}


def fly_one_ball(name: str, ball: str, split: int) -> dict:
    """Return errors in per cent by the paper's ball, at all rows and at those where no separator disagreed."""
    data = load_dataset(name)
    X, y = data.encoded(), (data.y > 0).to_numpy(int)
    unlabelled = np.random.default_rng(split).permutation(len(y)) >= int(0.6 * len(y))
    labels = np.where(unlabelled, np.nan, y)
    settings = {"width": WIDTHS[name], "n_balls": 1, **BALLS[ball]}
    model = BayesianTransducer(random_state=0, **settings).fit(X, labels)
    other = BayesianTransducer(random_state=1, **settings).fit(X, labels)
    answer = model.answer_
    is_wrong = answer.values.astype(int) != y[unlabelled]
    is_kept = answer.confidence >= 1.0
    point = model.predict_bayes_point(X[unlabelled]).astype(int)
    apart = answer.probabilities[:, 1] - other.answer_.probabilities[:, 1]
    return {
        "bounces": model.n_bounces_,
        "error": 100 * is_wrong.mean(),
        "rejected": 100 * np.mean(~is_kept),
        "error_at_1": 100 * is_wrong[is_kept].mean() if is_kept.any() else np.nan,
        "agrees": 100 * np.mean(point == answer.values.astype(int)),
        "differ": 100 * np.sqrt(np.mean(apart**2)),
    }


def one_ball(study: Study) -> None:
    """Fly the paper's own ball, by its stopping rule."""
    cells = [
        {"name": name, "ball": ball, "split": split}
        for name in WIDTHS
        for ball in BALLS
        for split in study.splits(20, 100)
    ]
    splits = study.collect("one-ball", cells, fly_one_ball)
    splits["row"] = splits["name"] + ", " + splits["ball"]
    lines = splits.melt(id_vars=["row"], value_vars=list(ONE_BALL.values()), var_name="column")
    lines["column"] = lines["column"].map({raw: shown for shown, raw in ONE_BALL.items()})
    lines = lines.dropna(subset="value")
    paper = {(f"heart, {ball}", "error at 1"): 16.4 for ball in list(BALLS)[:2]}
    summary = summarise(lines, "row", "column", "value", paper)
    title = "The paper's ball: error in %, and at threshold 1, where rows are kept on which it met no disagreement"
    bounces = sorted(splits["bounces"].unique().tolist())
    note = (
        f"Bounces: {', '.join(f'{count:,}' for count in bounces)}, exactly.\n"
        "The Bayes point, one separator, gives the class of the vote at so many per cent of the unlabelled rows.\n"
        "Two balls from different starts differ by so much, in hundredths of a probability (root mean square); if "
        "bounces were independent, 2.2 would be the most after 1,000 of them."
    )
    study.publish("one-ball", title, summary, note=note)


def describe(
    truth: np.ndarray, answers: np.ndarray, confidence: np.ndarray, rejected: float
) -> dict:
    """Return the numbers of one curve, in per cent."""
    curve = errors_at(np.append(SHARES, rejected), truth, answers, confidence)
    area = area_under_rejection_curve(truth, answers, confidence)
    return {
        "rejected_1": 100 * rejected,
        "error_at_1": 100 * curve[-1],
        "area": 100 * area,
        **dict(zip(CURVE, np.round(100 * curve[:-1], 4), strict=True)),
    }


def errors_at(
    shares: np.ndarray, truth: np.ndarray, answers: np.ndarray, confidence: np.ndarray
) -> np.ndarray:
    """Return the error among the rows kept when the given shares are rejected; equal confidences in random order."""
    errors, rejected = rejection_curve(truth, answers, confidence)
    mistakes = np.interp(
        shares, np.append(rejected, 1.0), np.append(errors * (1.0 - rejected), 0.0)
    )
    kept = 1.0 - shares
    return np.divide(mistakes, kept, out=np.full(len(shares), np.nan), where=kept > 0.0)


def first_below(curve: np.ndarray, target: float) -> float:
    """Return the per cent rejected at which a curve first comes down to an error; NaN if it does not."""
    at = np.flatnonzero(curve <= target)
    if len(at) == 0:
        return np.nan
    start = max(at[0] - 1, 0)
    return 100 * float(np.interp(-target, -curve[start : at[0] + 1], SHARES[start : at[0] + 1]))


def figure_2(study: Study) -> None:
    """Error against rejection rate."""
    cells = [{"name": name, "split": split} for split in study.splits(20, 100) for name in WIDTHS]
    splits = study.collect("figure-2", cells, run_split).sort_values(
        "name", ascending=False, kind="stable"
    )
    splits["row"] = splits["name"] + ", " + splits["method"]
    lines = splits.melt(id_vars=["row"], value_vars=list(SHOWN.values()), var_name="column")
    lines["column"] = lines["column"].map({raw: shown for shown, raw in SHOWN.items()})
    summary = summarise(lines, "row", "column", "value", PAPER)
    draw(study, splits)
    title = "Error in % among the rows kept, as rows of low confidence are rejected"
    study.publish("figure-2", title, summary, note=say(splits))


def say(splits: pd.DataFrame) -> str:
    """Return the claims of the paper, each with what was seen."""
    said = []
    for name, target in TARGETS.items():
        curves = curves_of(splits, name)
        areas = {
            method: areas.to_numpy() for method, areas in curves_of(splits, name, "area").items()
        }
        for method in (BAYES, SOFT):
            ours, svm = areas[method], areas[SVM]
            p = wilcoxon(ours, svm, alternative="less").pvalue
            said.append(
                f"{name}, {method}: area under the curve smaller than the SVM's in {np.sum(ours < svm)} of {len(svm)} "
                f"splits, larger in {np.sum(ours > svm)}; Wilcoxon signed-rank test, one-sided, p = {p:.2g}."
            )
        reached = {
            method: first_below(curve.mean().to_numpy(), target) for method, curve in curves.items()
        }
        said.append(
            f"{name}, rejected when the mean error comes down to {target} %: "
            + "; ".join(f"{method} {share:.1f} %" for method, share in reached.items())
            + f".\n  Bayesian rejects {reached[SVM] - reached[BAYES]:.1f} % less than the SVM, standard error "
            f"{gain_error(curves, target):.1f}" + (" (paper: 4 %)." if name == "thyroid" else ".")
        )
    said.append(
        "Threshold 1 rejects every row on which not all separators agree, and as many rows of the other methods.\n"
        "  The paper has thyroid's error near 0 at about 20 % rejected."
    )
    return "\n".join(f"- {line}" for line in said)


def curves_of(splits: pd.DataFrame, name: str, columns: str | list[str] = CURVE) -> dict:
    """Return each method's numbers on one set, in the order of the splits."""
    lines = splits[splits["name"] == name].sort_values("split")
    return {method: lines.loc[lines["method"] == method, columns] for method in COLORS}


def gain_error(curves: dict, target: float, n_draws: int = 500) -> float:
    """Return the standard error of the rejections saved: splits drawn again with replacement."""
    random = np.random.default_rng(0)
    bayes, svm = curves[BAYES].to_numpy(), curves[SVM].to_numpy()
    gains = []
    for _ in range(n_draws):
        drawn = random.integers(len(svm), size=len(svm))
        gains.append(
            first_below(svm[drawn].mean(axis=0), target)
            - first_below(bayes[drawn].mean(axis=0), target)
        )
    return float(np.nanstd(gains))


def draw(study: Study, splits: pd.DataFrame) -> None:
    """Draw mean curves with a band of one standard error, and the errors that the paper names."""
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.6), layout="constrained")
    for ax, name in zip(axes, WIDTHS, strict=True):
        for method, lines in curves_of(splits, name).items():
            color, mean, error = COLORS[method], lines.mean(), lines.std() / np.sqrt(len(lines))
            ax.fill_between(
                100 * SHARES, mean - error, mean + error, color=color, alpha=0.18, linewidth=0
            )
            ax.plot(100 * SHARES, mean, color=color, label=method)
        ax.axhline(TARGETS[name], color=GREY, linewidth=0.8, linestyle=":")
        ax.text(60, TARGETS[name], f"{TARGETS[name]} %", color=GREY, ha="right", va="bottom")
        ax.set(
            title=f"{name}, width {WIDTHS[name]:g}",
            xlabel="rejected, %",
            xlim=(0, 60),
            ylim=(0, None),
        )
    axes[0].set_ylabel("error among the rows kept, %")
    axes[0].legend(loc="upper right")
    study.draw("figure-2", figure)
    plt.close(figure)


if __name__ == "__main__":
    main("graepel1999", __doc__, {"figure-2": figure_2, "one-ball": one_ball}, WIDTHS)
