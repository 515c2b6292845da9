"""The command ``transduce label``: opens a session and its page, until it is interrupted."""

from __future__ import annotations

import importlib.util
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.ndimage import zoom
from sklearn.datasets import load_digits

from transduce.core.safe_files import whole_file
from transduce.labelling.journal import Label
from transduce.labelling.session import Session, SessionSettings


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
    from transduce.page.server import listen, make_server

    named: list[Label] = list(classes)
    if demo:
        table, target, show, named = demo_digits()
        say(f"The table {table} was made of bundled images of digits.")
    if table is None or target is None:
        raise ValueError("Name a table and, with --target, the column to label; or try --demo.")
    settings = SessionSettings(recall=recall, certainty=certainty, task=task, seed=seed)
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


FOLDER = Path("demo-output") / "label-digits"
WANTED = 8


def demo_digits(folder: Path = FOLDER) -> tuple[Path, str, list[str], list[Label]]:
    """Write the table and its images, and return its path, the target, the column shown, and the classes."""
    from matplotlib.image import imsave

    path = folder / "digits.csv"
    classes: list[Label] = list(range(10))
    if not path.exists():
        digits = load_digits()
        order = np.random.default_rng(0).permutation(len(digits.images))
        (folder / "images").mkdir(parents=True, exist_ok=True)
        names = [f"images/{number:04d}.png" for number in range(len(order))]
        for name, image in zip(names, digits.images[order], strict=True):
            imsave(folder / name, zoom(image, 8, order=3), cmap="gray_r", vmin=0, vmax=16)
        pixels = pd.DataFrame(digits.data[order].astype(int), columns=[f"pixel {i}" for i in range(64)])
        table = pd.concat([pd.DataFrame({"image": names}), pixels], axis=1)
        with whole_file(path, force=True) as file:
            file.write(table.to_csv(index=False).encode())
    return path, "digit", ["image"], classes


def begin_demo(session: Session) -> None:
    """Search for one of the digits, in a session that has not said yet what it wants."""
    session.want(WANTED)
    session.propose("find")
