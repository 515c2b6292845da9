"""How to do it again: a command, or a call, that can be copied."""

from __future__ import annotations

import shlex
from typing import Any

from transduce.tables.files import KINDS, kind_of

_DEFAULTS: dict[str, Any] = {
    "method": "auto",
    "confidence": 0.9,
    "certainty": 0.95,
    "guarantee": "auto",
    "label_conditional": False,
    "tolerance": None,
    "probabilities": False,
    "random_labels": None,
    "sampling_probability": None,
    "shift": "auto",
    "sensitivity": 1.0,
    "groups": None,
    "within": None,
    "order": None,
    "ignore": [],
    "text": [],
    "id": None,
    "missing": [],
    "minimum": None,
    "maximum": None,
    "label_next": False,
    "reject_share": None,
    "budget_seconds": 300.0,
    "sample": 20_000,
    "device": None,
    "random_state": 0,
    "n_jobs": None,
    "sheet": None,
}
_OPTIONS = {
    "random_state": "seed",
    "budget_seconds": "budget",
    "minimum": "min",
    "maximum": "max",
    "n_jobs": "jobs",
}


def again(settings: dict[str, Any]) -> str:
    """Return the command that does it again where the table came from a file, and the call of `fill` elsewhere."""
    if "target" not in settings:
        return ""
    named = {key: settings[key] for key in _DEFAULTS if key in settings and settings[key] != _DEFAULTS[key]}
    ordered = {
        key: value
        for key, value in named.items()
        if key in ("method", "confidence", "certainty", "guarantee")
    }
    ordered["task"] = settings.get("task", "auto")
    ordered |= {key: value for key, value in named.items() if key not in ordered}
    source = str(settings.get("source") or "").replace("\\", "/").rpartition("/")[2]
    if not source or (kind_of(source)[0] not in KINDS.values() and source != "standard input"):
        words = [
            f"{key}={value!r}"
            for key, value in {"target": settings["target"], **ordered}.items()
            if key != "sheet"
        ]
        return f"fill(table, {', '.join(words)})"
    parts = [
        "transduce",
        "fill",
        "-" if source == "standard input" else source,
        "--target",
        str(settings["target"]),
    ]
    for key, value in ordered.items():
        option = f"--{_OPTIONS.get(key, key).replace('_', '-')}"
        for one in value if isinstance(value, list) else [value]:
            parts += (
                [option]
                if one is True
                else [f"{option}={one}"]
                if str(one).startswith("-")
                else [option, str(one)]
            )
    return shlex.join(parts)
