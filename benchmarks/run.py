"""All comparisons of speed, and how cost grows with the number of rows, in one run.

    python benchmarks/run.py [--quick | --full] [--only NAME ...] [--threads 1] [--publish]

Runs ``measure`` of each script, each in a process of its own on as many threads as told, prints one table of ratios
(the opponent's time over ours, in the same run), and writes it with every number into ``benchmarks/output/speed``.
The standard run takes about ten minutes; ``--quick`` takes small sizes, ``--full`` those that need an hour and 8 GB.
``--publish`` writes into ``docs/results/speed`` too and renews the tables between the markers of
``docs/performance.md`` and ``docs/evidence.md``; it takes a whole run of standard or full size. A script that fails,
such as for want of an opponent's package, is named and left out, and nothing is published then.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pandas as pd
from docs_page import put_between
from speed_table import SIZES, as_markdown, machine, versions

HERE = Path(__file__).parent
OUTPUT = HERE / "output" / "speed"
DOCS = HERE.parent / "docs"
PUBLISHED = DOCS / "results" / "speed"
SCRIPTS = (
    "confidence_machine",
    "tuned_machine",
    "ridge",
    "gaussian_process",
    "bayesian",
    "spectral_graph",
    "conformal",
)
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA", "VECLIB_MAXIMUM")


def environment(threads):
    """Return the environment of a process that may use so many threads; 0 leaves all of them.

    On one thread, seconds are those of the processor: other work on the machine does not count.
    """
    if not threads:
        return dict(os.environ)
    limits = {f"{name}_NUM_THREADS": str(threads) for name in THREADS[:-1]}
    return {
        **os.environ,
        **limits,
        f"{THREADS[-1]}_THREADS": str(threads),
        "LOKY_MAX_CPU_COUNT": str(threads),
        "BENCH_CLOCK": "cpu" if threads == 1 else "wall",
    }


def run_one(name, size, out):
    """Measure one script in this process."""
    warnings.simplefilter("ignore")
    importlib.import_module(name).measure(size).to_csv(out / f"{name}.csv", index=False)


def run_apart(name, size, out, threads):
    """Measure one script in a process of its own; return whether it succeeded."""
    command = [sys.executable, __file__, "--one", name, "--size", size, "--out", str(out)]
    return subprocess.run(command, env=environment(threads), check=False).returncode == 0


def run_all(names, size, out, threads):
    """Measure all scripts; return those that failed."""
    failed = []
    for i, name in enumerate(names):
        print(f"[{i + 1}/{len(names)}] {name} ...", flush=True)
        began = time.perf_counter()
        if not run_apart(name, size, out, threads):
            failed.append(name)
        word = "failed" if name in failed else "done"
        print(
            f"[{i + 1}/{len(names)}] {name}: {word}, {time.perf_counter() - began:.0f} s",
            flush=True,
        )
    return failed


def heading(size, threads):
    on = f"{threads} thread{'s' * (threads > 1)}" if threads else "all cores"
    return f"{size.capitalize()} run on {on} of: {machine()}. {versions()}."


def publish_into(page, marker, text):
    """Put the text between the two markers of a name."""
    put_between(page, f"<!-- {marker}: begin -->", f"<!-- {marker}: end -->", text)


def refuse_part(only, size):
    """End with a message if what is to be published would be a part of what the docs hold."""
    given = [*(["--only"] if only else []), *(["--quick"] if size == "quick" else [])]
    if given:
        sys.exit(
            f"--publish renews all tables of the docs and needs a whole run: leave out {' and '.join(given)}."
        )


def write_speed(out, names, size, threads, publish):
    """Put all lines together; print and write the table."""
    parts = [pd.read_csv(out / f"{name}.csv") for name in names]
    if not parts:
        return
    table = pd.concat(parts, ignore_index=True)
    text = f"{heading(size, threads)}\n\n{as_markdown(table)}"
    print(f"\n{text}\n")
    for folder in (out, PUBLISHED) if publish else (out,):
        folder.mkdir(parents=True, exist_ok=True)
        table.to_csv(folder / "speed.csv", index=False, float_format="%.4g")
        (folder / "speed.md").write_text(text + "\n", encoding="utf-8")
    if publish:
        publish_into(DOCS / "performance.md", "speed", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--quick", dest="size", action="store_const", const="quick", help="small sizes (minutes)"
    )
    size.add_argument(
        "--full", dest="size", action="store_const", const="full", help="large sizes (an hour)"
    )
    size.add_argument("--size", choices=SIZES, help=argparse.SUPPRESS)
    parser.set_defaults(size="standard")
    parser.add_argument(
        "--only", nargs="+", choices=(*SCRIPTS, "scaling"), help="run some of the scripts"
    )
    parser.add_argument(
        "--threads", type=int, default=1, help="threads of each process; 0 for all cores"
    )
    parser.add_argument(
        "--publish",
        action="store_true",
        help="renew docs/performance.md, docs/evidence.md and docs/results/speed",
    )
    parser.add_argument("--out", type=Path, default=OUTPUT, help=argparse.SUPPRESS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.publish:
        refuse_part(options.only, options.size)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.one:
        run_one(options.one, options.size, options.out)
        return
    names = options.only or [*SCRIPTS, "scaling"]
    print(heading(options.size, options.threads), flush=True)
    failed = run_all(names, options.size, options.out, options.threads)
    done = [name for name in names if name not in failed]
    publish = options.publish and not failed
    speed = [name for name in done if name != "scaling"]
    write_speed(options.out, speed, options.size, options.threads, publish)
    if "scaling" in done:
        write_scaling(options.out, publish)
    if failed:
        unpublished = " The docs are as they were." if options.publish else ""
        sys.exit(f"Not measured: {', '.join(failed)}. What went wrong is said above.{unpublished}")


def write_scaling(out, publish):
    """Print, draw and write how cost grows."""
    import scaling

    table = pd.read_csv(out / "scaling.csv")
    text = scaling.report(table)
    print(f"\n{text}\n")
    for folder in (out, PUBLISHED) if publish else (out,):
        folder.mkdir(parents=True, exist_ok=True)
        table.to_csv(folder / "scaling.csv", index=False, float_format="%.4g")
        (folder / "scaling.md").write_text(text + "\n", encoding="utf-8")
        scaling.draw(table, folder / "scaling.svg")
    if publish:
        publish_into(DOCS / "evidence.md", "scaling", text)


if __name__ == "__main__":
    main()
