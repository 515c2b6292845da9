"""The sentences of a report: the question, the answer, what is guaranteed, and what to be careful about."""

from __future__ import annotations

from typing import Any

from transduce.report.wording import count, decimals_for, level, number, percent

_LOST = {
    "tied": "{} are ties between classes that are equally good",
    "rejected": "{} are marked as rejected, because they are too unsure",
    "unreached": "{} have no answer, because nothing connects them with a known value",
}


def question(summary: dict[str, Any]) -> str:
    """Return the question in sentences."""
    counts, source = summary["counts"], summary["source"]
    where = f" of {source}" if source else ""
    if not counts["unlabelled"]:
        return f"No value is missing in “{summary['target']}”{where}, so there was nothing to fill."
    share = percent(counts["unlabelled"] / counts["rows"])
    kind = "numbers" if summary["task"] == "regression" else count(counts["classes"], "class", "classes")
    missing = "has no value" if counts["unlabelled"] == 1 else "have no value"
    return (
        f"{counts['unlabelled']:,} of the {count(counts['rows'], 'row')}{where} {missing} in “{summary['target']}” "
        f"({share}). They were filled from the {count(counts['labelled'], 'row')} that have one ({kind})."
    )


def reply(summary: dict[str, Any]) -> list[str]:
    """Return what was answered, in sentences."""
    counts = summary["counts"]
    if not counts["unlabelled"]:
        return ["There is nothing to fill."]
    lost = [words.format(f"{counts[kind]:,}") for kind, words in _LOST.items() if counts[kind]]
    first = (
        f"All {count(counts['unlabelled'], 'row')} were answered."
        if counts["unlabelled"] > 1
        else "It was answered."
    )
    if lost:
        answered = counts["answered"] + counts["unusual"]
        first = f"{answered:,} of {count(counts['unlabelled'], 'row')} were answered; {'; '.join(lost)}."
    if counts["unusual"]:
        first += (
            f" {count(counts['unusual'], 'row')} are unusual: even the answered class rarely looks like that."
        )
    test = summary["exchangeability"]
    if test is not None and test["shifted"]:
        first += (
            f" Rows with and without a value differ, and the guarantee is {summary['guarantee']['kind']}."
        )
    return [first, *(_numbers if summary["task"] == "regression" else _classes)(summary)]


def _numbers(summary: dict[str, Any]) -> list[str]:
    found, at = summary["answers"], level(summary["confidence"])
    if not found["n_answered"]:
        return []
    digits = found["decimals"]
    sentences = [
        f"The answers lie between {number(found['smallest'], digits)} and {number(found['largest'], digits)}; half of "
        f"them are below {number(found['median'], digits)}."
    ]
    if found["median_width"] is not None:
        sentences.append(f"Each comes with an interval at {at}. {width_words(found)}")
    elif found["n_unbounded"]:
        sentences.append(f"At {at} their intervals are unbounded: any number is possible.")
    return sentences


def width_words(answers: dict[str, Any]) -> str:
    """Return how wide intervals are."""
    width = number(answers["median_width"], answers["decimals"])
    return (
        f"All intervals are {width} wide."
        if answers["equally_wide"]
        else f"Half of them are narrower than {width}."
    )


def _classes(summary: dict[str, Any]) -> list[str]:
    found, at = summary["answers"], level(summary["confidence"])
    if found["n_one"] is None:
        return []
    said = [f"At {at} only one class is possible at {count(found['n_one'], 'row')}"]
    said += [f"several at {found['n_several']:,}"] if found["n_several"] else []
    said += (
        [f"none at {found['n_empty']:,}, where even the likeliest would be unusual"]
        if found["n_empty"]
        else []
    )
    return [", ".join(said) + "."]


def column_guarantee(summary: dict[str, Any]) -> str:
    """Return what is guaranteed of the column where the statement does not say so itself; "" where it does."""
    law, what = summary["law"], _outside(summary)
    if not summary["counts"]["unlabelled"] or (law is not None and law["at_most"] is not None):
        return ""
    if law is None and summary["guarantee"]["kind"] != "none":
        return (
            f"How many {what} in total is not guaranteed: the guarantee is for each row alone, so that on average "
            f"at most {level(1 - summary['confidence'])} are."
        )
    return f"Nothing is guaranteed about how many {what}."


def _outside(summary: dict[str, Any]) -> str:
    if summary["task"] == "regression":
        return "true values are outside their intervals"
    return "true classes are outside their sets"


def caveats(summary: dict[str, Any]) -> list[str]:
    """Return what a reader should be careful about."""
    counts, answers, kind = summary["counts"], summary["answers"], summary["guarantee"]["kind"]
    if not counts["unlabelled"]:
        return []
    found = []
    if summary["exchangeability"] is not None and summary["exchangeability"]["shifted"]:
        found.append(
            "The rows without a value differ from those with one. Values may have been gathered on purpose rather than "
            "by chance; then intervals and sets contain the truth less often than stated, or more often."
        )
    elif kind != "none":
        found.append(
            "The guarantee assumes that chance alone decided which rows have a value. A test can find signs against "
            "this in the other columns, but it cannot prove it."
        )
    if kind != "none":
        found.append(
            "The guarantee is about rows picked at random, not about one particular row, or about groups of rows: "
            "some kinds of row may be outside more often than others."
        )
        found.append(
            "It is lost if columns, settings or the level were chosen by looking at these answers and trying again."
        )
    if answers.get("n_unbounded"):
        found.append(
            f"{count(answers['n_unbounded'], 'interval')} of {counts['unlabelled']:,} "
            f"{'is' if answers['n_unbounded'] == 1 else 'are'} unbounded: there are too few known values to say more "
            f"at {level(summary['confidence'])}, or no answer. A lower level may give bounds."
        )
    if answers.get("n_outside"):
        region = "interval" if summary["task"] == "regression" else "set"
        found.append(
            f"{count(answers['n_outside'], 'answer')} {'lies' if answers['n_outside'] == 1 else 'lie'} outside "
            f"{'its' if answers['n_outside'] == 1 else 'their'} own {region}: {region}s come from another fit, which "
            f"{'saw fewer of the known values' if summary['law'] is not None else 'is that of the confidence machine'}."
        )
    if counts["unreached"]:
        found.append(
            f"{count(counts['unreached'], 'row')} could not be answered: the value stays empty there."
        )
    if summary["quality"] is not None and len(summary["members"]) > 1:
        found.append(
            "Methods were weighted by the same held-out values that are scored here, so the blend may look a "
            "little better than it is. Intervals and sets do not depend on that."
        )
    if summary["relevance"]:
        found.append("Relevance says what the answers were made from, not what causes the values.")
    return found


def quality_sentence(summary: dict[str, Any]) -> str | None:
    """Return how good answers were at rows whose value is known, each answered as if it were not."""
    found = summary["quality"]
    if found is None:
        return None
    start = f"{count(found['n'], 'known value')} {'was' if found['n'] == 1 else 'were'} hidden in turn and answered."
    if summary["task"] == "classification":
        return (
            f"{start} {percent(found['accuracy'])} of the answers were right; answering “{found['commonest']}” for "
            f"every row would have been right for {percent(found['of_the_commonest'])}."
        )
    digits = decimals_for([found["mean_absolute_error"]])
    explained = (
        "" if found["r2"] is None else f" The share of variance explained (R²) is {number(found['r2'], 2)}."
    )
    return (
        f"{start} On average they were off by {number(found['mean_absolute_error'], digits)}; the mean value for every "
        f"row would have been off by {number(found['of_the_mean'], digits)}.{explained}"
    )
