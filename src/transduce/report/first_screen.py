"""What a reader sees first: how good the answers are, what is guaranteed, and whether that may be believed."""

from __future__ import annotations

from typing import Any

from transduce.report.wording import count, decimals_for, level, number, percent

BARELY = 0.2  # intervals less than this much narrower than without features say little
NO_BETTER = 0.95  # errors above this share of the simplest method's are no better


def cards(summary: dict[str, Any]) -> list[dict[str, str]]:
    """Return three questions with their answers: in a few large words, in a sentence, and how it looks."""
    if not summary["counts"]["unlabelled"]:
        return []
    return [_how_good(summary), _what_holds(summary), _believable(summary)]


def _card(question: str, large: str, small: str, tone: str) -> dict[str, str]:
    icon = {"good": "✓", "fair": "≈", "bad": "!"}[tone]
    return {"question": question, "large": large, "small": small, "tone": tone, "icon": icon}


def typical_error(summary: dict[str, Any]) -> tuple[str, str, bool] | None:
    """Return how good the answers are, what the simplest method would do, and whether they are better than it."""
    found = summary["quality"]
    if found is None:
        return None
    if summary["task"] == "classification":
        wrong, simple = 1.0 - found["accuracy"], 1.0 - found["of_the_commonest"]
        small = (
            f"always answering “{found['commonest']}” would be right for {percent(found['of_the_commonest'])}"
        )
        return f"{percent(found['accuracy'])} right", small, wrong < NO_BETTER * simple
    digits = decimals_for([found["mean_absolute_error"]])
    off = number(found["mean_absolute_error"], digits)
    small = f"always answering the mean would be off by {number(found['of_the_mean'], digits)}"
    if found["r2"] is not None and found["r2"] > 0.0:
        small += f"; the answers explain {100 * found['r2']:.0f} % of the variance"
    return f"off by {off} on average", small, found["mean_absolute_error"] < NO_BETTER * found["of_the_mean"]


def _how_good(summary: dict[str, Any]) -> dict[str, str]:
    question = "How good are the answers?"
    found = typical_error(summary)
    if found is None:
        return _card(question, "not known", "No known value was hidden to see how good they are.", "fair")
    large, small, better = found
    small = f"At known values that were hidden; {small}."
    if not better:
        return _card(question, large, f"{small} That is hardly better.", "bad")
    if summary["guarantee"]["in_doubt"]:
        return _card(question, large, f"{small} The rows to be filled differ from those.", "fair")
    return _card(question, large, small, "good")


def _what_holds(summary: dict[str, Any]) -> dict[str, str]:
    question = "What is guaranteed?"
    what = "intervals" if summary["task"] == "regression" else "sets"
    guarantee, law = summary["guarantee"], summary["law"]
    if guarantee["kind"] == "none":
        return _card(question, "nothing", guarantee["reason"] or f"The {what} are not guaranteed.", "bad")
    large = f"{'about' if guarantee['kind'] == 'approximate' else 'at least'} {level(summary['confidence'])}"
    small = f"of {what} hold the truth, on average"
    if law is not None and law["at_most"] is not None:
        small += f"; at most {law['at_most']:,} of {law['n_unlabelled']:,} do not, "
        small += f"with {level(law['certainty'])} certainty"
    small += f".{_barely(summary)}"
    if guarantee["in_doubt"]:
        return _card(question, "in doubt", f"If chance had chosen the labels: {large} {small}", "bad")
    return _card(
        question, large, small, "good" if guarantee["kind"] == "exact" and not _barely(summary) else "fair"
    )


def _barely(summary: dict[str, Any]) -> str:
    """Return that intervals or sets say little, if they do."""
    found = summary["answers"]
    if summary["task"] == "regression":
        told = found.get("narrower")
        if found.get("n_unbounded") and found["median_width"] is None:
            return " But the intervals are unbounded and say nothing."
        if told is not None and told < BARELY:
            return " But the intervals are hardly narrower than without any column: they say little."
        return ""
    if found["n_one"] is not None and found["n_one"] < BARELY * summary["counts"]["unlabelled"]:
        return f" But only {count(found['n_one'], 'set')} rule out all classes except one: they say little."
    return ""


def _believable(summary: dict[str, Any]) -> dict[str, str]:
    question = "May it be believed?"
    guarantee, tested = summary["guarantee"], summary["exchangeability"]
    names = [entry["name"] for entry in (tested or {}).get("features", [])][:3]
    where = f", most of all in {', '.join(f'“{name}”' for name in names)}" if names else ""
    if guarantee["kind"] == "none":
        return _card(question, "no guarantee", "Take the values as suggestions.", "bad")
    if guarantee["in_doubt"]:
        small = f"Rows with and without a known value differ{where}: more than chance chose which are known."
        return _card(question, "guarantee: in doubt", small, "bad")
    if guarantee["kind"] == "approximate":
        small = "It holds nearly, or under an assumption in doubt."
        if tested is not None and tested["shifted"]:
            small = (
                f"Rows with and without a known value differ{where}; an estimate of how corrects for that."
            )
        return _card(question, "guarantee: approximate", small, "fair")
    if guarantee["headline"] == guarantee["kind"]:
        return _card(question, "guarantee: exact", "It holds for any distribution.", "good")
    condition = guarantee["headline"].removeprefix("exact ")
    if condition != "if chance chose the labels":
        return _card(question, "guarantee: exact", f"{condition[0].upper()}{condition[1:]}.", "good")
    if tested is None or not tested["tested"]:
        seen = "no test could check that"
    elif tested["suspected"]:
        seen = "a test found weak signs against that"
    else:
        seen = "a test found nothing against that"
    small = f"If chance alone decided which values are known; {seen}."
    return _card(question, "guarantee: exact", small, "good")
