"""The commands ``transduce open`` and ``transduce label``.

They serve a page until they are interrupted.
"""

from __future__ import annotations

import importlib.util
import io
import socket
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.app.labelling.journal import Label
from transduce.app.labelling.session import Session, SessionSettings
from transduce.core.files import make_folder, whole_file
from transduce.core.words import OptionError, counted

if TYPE_CHECKING:
    from transduce.app.page.workspace import Workspace

Say = Callable[[str], None]
EVERY = 5.0  # seconds between two lines about a comparison that takes longer
FOLDER = Path("demo-output") / "label-digits"
WANTED = 8
MOMENT = 1.0  # seconds in which small tables are compared: their page opens ready


def run_open(
    table: str | None,
    *,
    port: int,
    browser: bool,
    say: Say,
) -> None:
    """Serve the page for the whole job, for the tables of a folder, until it is interrupted."""
    with _listening(port) as listening:
        from transduce.app.page.workspace import Workspace

        path = Path(table or ".")
        if path.is_dir():
            folder = path
            name = None
        else:
            folder = path.parent
            name = path.name
        say(f"The tables in {folder.resolve()}. Nothing leaves this computer.")
        _serve(Workspace(folder, name), listening, browser, say)
    say("Ended. Everything is kept beside the table; the same command goes on there.")


def run_label(
    table: str | Path | None,
    target: str | None,
    *,
    port: int = 0,
    browser: bool = True,
    demo: bool = False,
    say: Say = print,
    **how: Any,
) -> None:
    """Serve the labelling page of a table until it is interrupted.

    What is not named here is for `Session`.
    """
    with _listening(port) as listening:
        if demo:
            table, target, how["show"], how["classes"] = demo_digits()
            say(f"The table {table} was made of bundled images of digits.")
        if table is None or target is None:
            raise OptionError(
                "Name a table and, with --target, the column to label; or try --demo."
            )
        say(f"Reading {table}.")
        how["settings"] = replace(how.get("settings") or SessionSettings(), wait=False)
        with Session(table, target, **how) as session:
            session.preparation.join(MOMENT)
            if demo and session.state.wanted is None:
                session.want(WANTED)
                session.propose("find")
            labelled = len(session.state.labels)
            if labelled:
                already = f", {labelled:,} labelled in earlier sittings"
            else:
                already = ""
            rows = f"{session.table.name}: {session.table.n_rows:,} rows{already}."
            for line in (f"{rows} Everything is saved in {session.journal}.", *session.notes):
                say(line)
            threading.Thread(target=follow, args=(session, say), daemon=True).start()
            _serve(session, listening, browser, say)
            labels = counted(len(session.state.labels), "label is", "labels are")
            say(f"Ended. {labels} in {session.journal}; the same command goes on there.")


def follow(session: Session, say: Say) -> None:
    """Say how far the comparison of all rows is, until it is done."""
    if session.model is None:
        while not session.preparation.join(EVERY):
            say(session.preparation.words)
        say(
            session.preparation.words
            or "All rows are compared: answers are there, and Find can be used."
        )


def _listening(port: int) -> socket.socket:
    """Return where the page will be served, or raise a ValueError if that is not installed."""
    if any(importlib.util.find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise ValueError("The page needs a web server: pip install starlette uvicorn.")
    from transduce.app.page.server import listen

    return listen(port)


def _serve(
    served: Session | Workspace,
    listening: socket.socket,
    browser: bool,
    say: Say,
) -> None:
    """Say where the page is, and serve it until it is interrupted."""
    from transduce.app.page.server import make_server

    with suppress(KeyboardInterrupt):
        server, address = make_server(served, listening)
        say(f"Open {address}")
        say("The address works once, in one browser. Press Ctrl-C here to end.")
        if browser:
            webbrowser.open(address)
        server.run(sockets=[listening])


def _write_once(path: Path, content: bytes) -> None:
    """Write a file; one that an earlier demo wrote, in full or in part, may be there."""
    if path.exists() and not (path.is_file() and content.startswith(path.read_bytes())):
        raise FileExistsError(
            f"{path} exists already, and is no picture of the demo: move it away."
        )
    path.write_bytes(content)


def demo_digits(folder: Path = FOLDER) -> tuple[Path, str, list[str], list[Label]]:
    """Write scikit-learn's images of digits, to try the page on.

    Return path, target, column shown and classes.
    """
    import numpy as np
    import pandas as pd
    from matplotlib.image import imsave
    from scipy.ndimage import zoom
    from sklearn.datasets import load_digits

    path = folder / "digits.csv"
    if not path.exists():
        digits = load_digits()
        order = np.random.default_rng(0).permutation(len(digits.images))
        make_folder(folder / "images")
        names = [f"images/{number:04d}.png" for number in range(len(order))]
        for name, image in zip(names, digits.images[order], strict=True):
            picture = io.BytesIO()
            imsave(picture, zoom(image, 8, order=3), cmap="gray_r", vmin=0, vmax=16, format="png")
            _write_once(folder / name, picture.getvalue())
        pixels = pd.DataFrame(
            digits.data[order].astype(int), columns=[f"pixel {i}" for i in range(64)]
        )
        table = pd.concat([pd.DataFrame({"image": names}), pixels], axis=1)
        with whole_file(path) as file:
            file.write(table.to_csv(index=False).encode())
    return path, "digit", ["image"], list(range(10))
