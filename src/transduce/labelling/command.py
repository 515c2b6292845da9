"""The command ``transduce label``: opens a session and its page, until it is interrupted."""

from __future__ import annotations

import importlib.util
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from transduce.labelling.demo import begin_demo, demo_digits
from transduce.labelling.journal import Label
from transduce.labelling.session import Session
from transduce.labelling.settings import Settings


def run_label(  # noqa: PLR0913
    table: str | Path | None,
    target: str | None,
    *,
    show: Sequence[str] = (),
    classes: Sequence[str] = (),
    wanted: str | None = None,
    task: str = "auto",
    recall: float = 0.95,
    certainty: float = 0.95,
    port: int = 0,
    no_browser: bool = False,
    seed: int | None = None,
    demo: bool = False,
    say: Callable[[str], None] = print,
    working: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> None:
    """Serve the labelling page of a table until it is interrupted."""
    if any(importlib.util.find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise ValueError("The labelling page needs a web server: pip install 'transduce[label]'.")
    from transduce.labelling.server import listen, make_server

    named: list[Label] = list(classes)
    if demo:
        table, target, show, named = demo_digits()
        say(f"The table {table} was made of bundled images of digits.")
    if table is None or target is None:
        raise ValueError("Name a table and, with --target, the column to label; or try --demo.")
    settings = Settings(recall=recall, certainty=certainty, task=task, seed=seed)
    listening = listen(port)
    try:
        with working():
            session = Session(table, target, show=show, classes=named, wanted=wanted, settings=settings)
        with session:
            if demo and session.state.wanted is None:
                begin_demo(session)
            with suppress(KeyboardInterrupt):
                _tell(session, say)
                server, address = make_server(session, listening)
                _ready(address, say, browser=not no_browser)
                server.run(sockets=[listening])
            count = len(session.state.labels)
            say(
                f"Ended. {count:,} label{'s' * (count != 1)} are in {session.journal}; the same command goes on there."
            )
    finally:
        listening.close()


def _tell(session: Session, say: Callable[[str], None]) -> None:
    """Say what was opened."""
    state = session.state
    already = f", {len(state.labels):,} labelled in earlier sittings" if state.labels else ""
    say(
        f"{session.table.name}: {session.table.n_rows:,} rows{already}. Everything is saved in {session.journal}."
    )
    for note in session.notes:
        say(note)


def _ready(address: str, say: Callable[[str], None], *, browser: bool) -> None:
    """Say where the page is, and open it."""
    say(f"Open {address}")
    say("The address works once, in one browser. Press Ctrl-C here to end.")
    if browser:
        webbrowser.open(address)
