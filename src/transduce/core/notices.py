"""Kinds of warning that code, not only people, must be able to tell apart."""

from __future__ import annotations


class TooFewLabelsWarning(UserWarning):
    """Labels are too few for the confidence that was asked for: every region is the whole line, or every class.

    Examples
    --------
    >>> issubclass(TooFewLabelsWarning, UserWarning)
    True
    """
