"""Blending several methods' answers."""

from transduce.ensemble.blend import TransductiveBlend

__all__ = ["TransductiveBlend"]
