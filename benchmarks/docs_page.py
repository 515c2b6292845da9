"""Tables of a run, put into a page of the docs."""

from __future__ import annotations

import sys
from pathlib import Path


def put_between(page: Path, begin: str, end: str, text: str) -> None:
    """Put a text between two markers of a page; all around them stays.

    Parameters
    ----------
    page : Path
    begin, end : str
        The markers, such as ``<!-- speed: begin -->``. Without them in the page the program ends with a message.
    text : str
    """
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        sys.exit(
            f"{page.name} has no markers {begin} and {end}: put them where the table is to stand."
        )
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")
