"""One table for all comparisons of speed: its lines, how it is shown, and on what it was measured.

A line holds the seconds of one of our methods and of one opponent for the same work in the same run, and the peak
memory of both where it was measured. The ratio is the opponent's time over ours: above 1 we are faster. Seconds are
those of the clock on the wall, or of the processor if ``BENCH_CLOCK=cpu``: on one thread of an idle machine they are
the same, but only the second means anything on a busy one.
"""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pandas as pd

COLUMNS = [
    "method",
    "what",
    "n",
    "ours_s",
    "opponent",
    "opponent_s",
    "ratio",
    "ours_mb",
    "opponent_mb",
]
PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "online-cp",
    "crepes",
    "graphlearning",
    "faiss-cpu",
)
SIZES = ("quick", "standard", "full")
clock = time.process_time if os.environ.get("BENCH_CLOCK") == "cpu" else time.perf_counter


def line(method, what, n, ours_s, opponent, opponent_s, ours_mb=np.nan, opponent_mb=np.nan):
    """Return one line of the table."""
    ratio = opponent_s / ours_s
    return dict(
        zip(
            COLUMNS,
            (method, what, n, ours_s, opponent, opponent_s, ratio, ours_mb, opponent_mb),
            strict=True,
        )
    )


def as_frame(lines):
    return pd.DataFrame(lines, columns=COLUMNS).astype({"n": int})


def short(number):
    """Return a ratio in two digits: 0.25, 4.6, 720."""
    if not np.isfinite(number):
        return "-"
    number = float(f"{number:.1e}")
    digits = 1 - int(np.floor(np.log10(number))) if number > 0 else 0
    return f"{number:,.{max(digits, 0)}f}"


def as_markdown(frame):
    """Return ratios only, one line for each opponent, its sizes side by side."""
    lines = ["| method | what | opponent | n | time, theirs / ours | memory, theirs / ours |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    last = None
    for (method, what, opponent), part in frame.groupby(["method", "what", "opponent"], sort=False):
        memory = part["opponent_mb"] / part["ours_mb"]
        cells = (
            f"`{method}`" if method != last else "",
            what,
            opponent,
            " / ".join(f"{n:,}" for n in part["n"]),
            " / ".join(map(short, part["ratio"])),
            " / ".join(map(short, memory)) if memory.notna().any() else "",
        )
        lines.append("| " + " | ".join(cells) + " |")
        last = method
    return "\n".join(lines)


def versions():
    """Return Python and the packages that take part, with their versions."""
    found = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} missing")
    return ", ".join(found)


def machine():
    """Return processor, cores and memory; nothing that names the machine."""
    processor = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").is_file():
        models = [
            text
            for text in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if "model name" in text
        ]
        processor = models[0].partition(":")[2].strip() if models else processor
    memory = ""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = f", {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GB"
    return f"{processor}, {os.cpu_count()} cores{memory}, {platform.system()}"
