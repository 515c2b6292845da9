"""Kinds of warning that code, not only people, must be able to tell apart."""

from __future__ import annotations


class TooFewLabelsWarning(UserWarning):
    """There are too few labels for this confidence: every interval is the whole line, every set holds all classes."""
