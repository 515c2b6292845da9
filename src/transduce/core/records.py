"""Fields of a record, and which of them are not at their defaults."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any


def default_fields(record: Any) -> dict[str, Any]:
    """Return the default of each field of a record or of its class.

    That of a field without any is an empty list.
    """
    defaults: dict[str, Any] = {}
    for field in fields(record):
        defaults[field.name] = [] if field.default is MISSING else field.default
    return defaults


def changed_fields(record: Any) -> dict[str, Any]:
    """Return the fields of a record that are not at their defaults; values may be arrays."""
    changed: dict[str, Any] = {}
    for name, default in default_fields(record).items():
        value = getattr(record, name)
        if value is default:
            continue
        if hasattr(value, "dtype") or value != default:
            changed[name] = value
    return changed
