"""Values from a fit with all labels, with intervals or sets from a fit without the calibration labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transduce.core.answer import Answer
from transduce.core.types import AnyArray, Array
from transduce.core.validation import class_codes


def confidence_in(codes: AnyArray, p: Array) -> Array:
    """Return, for each row, the highest level at which all classes except the answered one are ruled out.

    Shapes: codes (m,), p (m, n_classes); returns (m,).
    """
    others = p.copy()
    others[np.arange(len(p)), np.where(codes >= 0, codes, p.argmax(axis=1))] = -np.inf
    return np.asarray(1.0 - others.max(axis=1), dtype=float)


def with_values(answer: Answer, better: Answer) -> Answer:
    """Return an answer with the values of a better one; its intervals or sets are extended to contain them.

    Notes
    -----
    The fit with all labels is the better one, so its value stays and the interval is extended: a larger interval
    contains the truth no less often.
    """
    answer = replace(
        answer,
        values=better.values,
        status=better.status,
        standard_errors=better.standard_errors,
        probabilities=better.probabilities,
    )
    if answer.p_values is not None and answer.classes is not None:
        codes = class_codes(better.values, answer.classes)
        own = np.take_along_axis(answer.p_values, np.maximum(codes, 0)[:, None], axis=1)[:, 0]
        credibility = np.where(codes >= 0, own, answer.p_values.max(axis=1))
        answer = replace(answer, confidence=confidence_in(codes, answer.p_values), credibility=credibility)
    return holding_values(answer)


def holding_values(answer: Answer) -> Answer:
    """Return the answer with every value in its own interval, and every class in its own set; no set is empty.

    Where no class was possible, the status says that the row is unusual.
    """
    if answer.regions is not None:
        known = np.where(answer.status == "unreached", np.nan, answer.values).astype(float)
        return replace(answer, regions=answer.regions.holding(known))
    if answer.label_sets is None or answer.classes is None:
        return answer
    codes = class_codes(answer.values, answer.classes)
    sets = answer.label_sets.copy()
    known = np.flatnonzero(codes >= 0)
    sets[known, codes[known]] = True
    unusual = ~answer.label_sets.any(axis=1) & (answer.status == "answered")
    return replace(answer, label_sets=sets, status=np.where(unusual, "unusual", answer.status))
