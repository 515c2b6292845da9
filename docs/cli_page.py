"""Write docs/cli.md from the command line's own help; a test holds the two equal."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from transduce.app.cli.app import app

PAGE = Path(__file__).with_name("cli.md")
INTRODUCTION = """\
# Command line

`transduce fill houses.csv --target price` writes `houses-filled.csv`: the table as it was, followed by new columns.
`python -m transduce` is the same command.

| new column | at a filled cell | at a cell that had a label |
| --- | --- | --- |
| `price_filled` | the prediction, from all labels | the label |
| `price_lower`, `price_upper` (numbers) | an interval that contains the truth with the stated confidence | empty |
| `price_set` (classes) | the possible classes, "or a class that no label shows" among them, joined by " \\| " | empty |
| `price_probability` (classes) | the probability that the prediction is right, calibrated by hidden labels | empty |
| `price_width_reduction` (numbers) | the share by which features narrow the interval, from 0 to 1 | empty |
| `price_confidence` (classes) | the level up to which no other class is possible | empty |
| `price_status` | `answered`, `below`, `above`, `unusual`, `tied`, `rejected` or `unreached` | `given` |

Dates, times and durations are filled as such, in the steps of the labels.
Where an end of an interval is empty, infinite or (in JSON) `null`, the interval has no bound there.
If `price_width_reduction` is 0, the features do not help; neither it nor `price_confidence` is a probability.
A row is `unusual` if even the predicted class is ruled out at the stated confidence, and is less probable than that.
The set then holds the prediction alone; `price_probability` says how likely it is right.

Progress goes to standard error, results to standard output.
With `--out -` the table goes to standard output, and the summary to standard error.
Files are written in one piece: if a run is interrupted, nothing is left half written.

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | something is wrong with the table; a sentence says what |
| 2 | something is wrong with the options, or a file would be overwritten (`--force` replaces it) |
| 3 | the claim of `audit --at-most` was not shown; nothing is wrong with the table |
| 130 | interrupted |

The rest of this page is what `--help` prints.
"""


def help_of(*words: str) -> str:
    """Return the help of a command, in a terminal of 100 columns without colours."""
    settings = {"terminal_width": 100, "prog_name": "transduce"}
    result = CliRunner().invoke(
        app, [*words, "--help"], env={"NO_COLOR": "1", "TERM": "dumb"}, **settings
    )
    assert result.exit_code == 0, result.output
    return "\n".join(line.rstrip() for line in result.output.strip().splitlines())


def page() -> str:
    """Return the page."""
    commands = [
        (),
        ("fill",),
        ("answer",),
        ("draw",),
        ("estimate",),
        ("audit",),
        ("open",),
        ("label",),
        ("compare",),
        ("methods",),
        ("example",),
        ("demo",),
    ]
    parts = [
        f"## {' '.join(('transduce', *words))}\n\n```text\n{help_of(*words)}\n```\n"
        for words in commands
    ]
    return "\n".join([INTRODUCTION, *parts])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
