"""Notes as their texts."""

from __future__ import annotations


def texts(notes):
    return [note.text for note in notes]
