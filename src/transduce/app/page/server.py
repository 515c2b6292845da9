"""The local web server.

A thin client of `fill` and `Session`, for one browser on this machine only.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import asdict, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pandas as pd
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transduce.app.filling.sources import FrameSource
from transduce.app.labelling.journal import Label
from transduce.app.labelling.session import Session, SessionSettings
from transduce.app.labelling.table import IMAGES, MOST_SHOWN, LabelTable, read_label_table
from transduce.app.page import corrected_copy, lists
from transduce.app.page import view as views
from transduce.app.page.kept import holds_decisions, journals_of
from transduce.app.page.preview import FIRST_ROWS, AnswerRows, Preview, outlook
from transduce.app.page.printed import render_drawn_rows
from transduce.app.page.run import (
    LABELS,
    RESULT,
    GivenLabels,
    LostLabelsError,
    Run,
    as_chosen,
    as_sentence,
    beside_folder,
    cell_like,
    file_cell,
    result_name,
)
from transduce.app.page.view import Json
from transduce.app.page.workspace import (
    CARDS,
    TABLE,
    Choices,
    StaleError,
    Workspace,
    spell_for_page,
    way_of_picked,
)
from transduce.app.report.jsonable import escape_text
from transduce.app.report.suspects import name_row
from transduce.app.tables import files as tables
from transduce.app.tables.formats import Table
from transduce.app.tables.glances import Glance, first_rows, glance, is_too_large
from transduce.app.tables.pictures import preview
from transduce.app.tables.raw_rows import raw_rows
from transduce.core.files import make_folder, whole_file
from transduce.core.types import JsonObject
from transduce.core.words import options_spelled

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
ENTER = (
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
    '<meta http-equiv="refresh" content="0;url=/?first">'
    "<title>transduce</title></head><body><p>Opening …</p></body></html>"
)
REPORT_POLICY = (  # the report has a policy of its own besides, which names its script
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
LONGEST_BODY = 64_000
LIST_ENDINGS = (".xlsx", ".csv")
LONGEST_LIST = 2**24  # bytes of a list that comes back
GLANCED_ROWS = 20_000  # of a table too large for memory
LONGEST_TEXT = 200
RAW_ROWS = 25  # of a file that are shown as they stand
RAW_LETTERS = 40  # of each of their cells
MOST_CLASSES = 200  # that are typed at once
FIELDS = {"a short text": str, "a whole number": int, "a number": int | float | None}
MEDIA_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
SESSION_TASKS = {"auto": "auto", "regression": "numbers", "classification": "classes"}
# Tables, and answers of one column, that are kept in memory for tabs that look at them in turn.
MOST_TABLES = 2
MOST_ANSWERS = 40
# The labelling session that a request is about, as its page was told; None if it does not say.
SESSION: ContextVar[str | None] = ContextVar("session", default=None)
Body = dict[str, Json]
Lock = AbstractContextManager[Any]


class Guard:
    """Lets through only requests to this address, from its own page, with its cookie.

    The one-time key gives the cookie.
    """

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        self._app = app
        self._token = token
        self._used = False
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"}
        self._cookie_name = f"transduce-{port}"  # cookies do not tell ports apart
        self._secret = secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it; every answer carries the headers."""
        if scope["type"] != "http":
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        request = Request(scope)
        table = _table_of(request)
        if table is not None:
            TABLE.set(table)
        SESSION.set(request.headers.get("x-transduce-session"))
        await (self._refusal(request) or self._app)(scope, receive, sending)

    def _refusal(self, request: Request) -> Response | None:
        """Return the answer to a request that must not go through; None if it may."""
        host = request.headers.get("host", "")
        origin = request.headers.get("origin")
        if host not in self._hosts:
            return PlainTextResponse("Forbidden: this address is not served here.", 403)
        foreign = origin is not None and origin != f"http://{host}"
        if foreign or (origin is None and request.method not in ("GET", "HEAD")):
            return PlainTextResponse("Forbidden: the request comes from another page.", 403)
        site = request.headers.get("sec-fetch-site", "none")
        if site not in ("none", "same-origin") and request.scope["path"] != "/":
            return PlainTextResponse("Forbidden: the request comes from another site.", 403)
        cookie = request.cookies.get(self._cookie_name, "")
        if secrets.compare_digest(cookie.encode(), self._secret.encode()):
            return None
        return self._enter(request)

    def _enter(self, request: Request) -> Response:
        """Return the cookie for the one-time key, which is then used up."""
        if request.scope["path"] == "/":
            key = request.query_params.get("token", "")
        else:
            key = ""
        if self._used or not secrets.compare_digest(key.encode(), self._token.encode()):
            return PlainTextResponse(
                "Forbidden: open the address that the command printed. "
                "It works once, in one browser; start the command again for a new one.",
                403,
            )
        self._used = True
        # A page that leads on by itself, not a redirect: the strict cookie is then sent also if a
        # link led here.
        response = Response(ENTER, media_type="text/html")
        response.set_cookie(
            self._cookie_name,
            self._secret,
            httponly=True,
            samesite="strict",
            path="/",
        )
        return response


def _table_of(request: Request) -> str | None:
    """Return the table that a request names in its address or a header; None if it names none."""
    in_address = request.query_params.get("table")  # decoded with the address
    if in_address is not None:
        return in_address
    in_header = request.headers.get("x-transduce-table")
    return None if in_header is None else unquote(in_header)


class EndedError(ValueError):
    """A question about a session that has ended: a page that is being left may still ask it."""


class Server:
    """Answers the requests of the labelling page, one at a time."""

    def __init__(self, session: Session | None) -> None:
        self.session = session
        self.table: str | None = None  # whose session this is, where a page has several tables
        self.key = ""  # by which a page knows its session again
        self.lock = threading.RLock()

    def begin(self, session: Session, table: str) -> None:
        """Answer for a session from now on."""
        self.session = session
        self.table = table
        self.key = secrets.token_urlsafe(8)

    def end(self) -> None:
        """Close the session, if there is one."""
        with self.lock:
            if self.session is not None:
                self.session.close()
            self.session = None
            self.table = None

    @property
    def _session(self) -> Session:
        if self.session is None:
            raise EndedError("Labelling has ended: go back to the table.")
        if self.key and SESSION.get() not in (None, self.key):
            raise EndedError(
                "Labelling goes on in another tab, so it has ended here: go back to the table."
            )
        return self.session

    def routes(self, page: str = "/", home: str | None = None) -> list[Route]:
        """Return the routes of a page at an address.

        `home` is the page to go back to, if there is one.
        """

        def first(request: Request) -> Response:
            if home and self.session is None:
                return RedirectResponse(home, 303)
            return _static("index.html")

        reading: dict[str, Callable[[Request], Json]] = {
            "about": lambda request: (
                views.about(self._session) | {"home": home, "session": self.key}
            ),
            "view": lambda request: views.view(self._session),
            "preparing": lambda request: views.preparing(self._session),
            "history": self._history,
            "search": self._search,
            "row/{row:int}": self._row,
        }
        acting: dict[str, Callable[[Body], object]] = {
            "answer": self._answer,
            "skip": lambda body: self._session.skip(),
            "undo": lambda body: self._session.undo(),
            "mode": lambda body: self._session.propose(_read(body, "mode", "a short text")),
            "want": lambda body: self._session.want(self._class(body)),
            "class": lambda body: self._session.add_class(_read(body, "name", "a short text")),
            "goal": self._goal,
            "freeze": lambda body: self._session.freeze(_read(body, "tolerance", "a number")),
            "plan": lambda body: self._session.plan_draws(_read(body, "count", "a whole number")),
            "export": self._export,
        }
        return [
            Route(page, first),
            Route(f"{page.rstrip('/')}/print", self._print),
            Route("/page/{name}", lambda request: _static(request.path_params["name"])),
            Route("/favicon.ico", lambda request: Response(status_code=204)),
            Route(
                "/image/{row:int}/{column:int}",
                lambda request: _picture(self._session.table, request),
            ),
            *(
                Route(f"/api/{name}", _reading(answer, self.lock))
                for name, answer in reading.items()
            ),
            *_acting(
                "/api",
                {name: partial(self._do, do) for name, do in acting.items()},
                self.lock,
            ),
        ]

    # ------------------------------------------------------------------------------------- reading

    def _print(self, request: Request) -> Response:
        with self.lock:
            if self.session is None:
                return PlainTextResponse("Labelling has ended: go back to the table.", 404)
            return Response(render_drawn_rows(self.session), media_type="text/html")

    def _history(self, request: Request) -> Json:
        start = int(request.query_params.get("start", 0))
        count = int(request.query_params.get("count", 200))
        return views.history(self._session, max(start, 0), min(max(count, 1), 200))

    def _search(self, request: Request) -> Json:
        table = self._session.table
        lines = list[Json]()
        for row in table.search(request.query_params.get("words", "")[:LONGEST_TEXT]):
            label = self._session.state.label_of(row)
            if label is None:
                shown = None
            else:
                shown = str(label)
            lines.append({"row": row, "title": table.title(row), "label": shown})
        return lines

    def _row(self, request: Request) -> Json:
        row = int(request.path_params["row"])
        if row >= self._session.table.n_rows:
            raise ValueError(f"There is no row {row}.")
        return views.row_card(self._session, row, self._session.answers())

    # -------------------------------------------------------------------------------------- acting

    def _do(self, do: Callable[[Body], object], body: Body) -> Json:
        """Do what the page asks for, and return what it shows then."""
        state = self._session.state
        if body.get("version", state.n_events) != state.n_events:
            raise StaleError(
                "Another tab has gone on: here is where the session stands now. "
                "Look, then do it again."
            )
        reply = do(body)
        if isinstance(reply, dict):
            return reply
        return views.view(self._session)

    def _answer(self, body: Body) -> Json:
        label = body.get("label")
        if self._session.task == "classes":
            label = self._class(body)
        if isinstance(label, dict | list):
            raise ValueError("A label is a number or a class.")
        asks = views.question(self._session, label)
        if asks is not None:
            return {"ask": asks}
        self._session.answer(label, row=_read(body, "row", "a whole number"))
        return None

    def _class(self, body: Body) -> Label:
        """Return the class that a request names by its place."""
        code = _read(body, "class", "a whole number")
        classes = self._session.classes
        if not 0 <= code < len(classes):
            raise ValueError(f"There is no class number {code}.")
        return classes[code]

    def _goal(self, body: Body) -> None:
        value = _read(body, "value", "a number")
        if value is None:
            raise ValueError("Type a number from 0 to 100.")
        self._session.set_goal(_read(body, "name", "a short text"), value)

    def _export(self, body: Body) -> Json:
        try:
            exported = self._session.export(force=bool(body.get("force")))
        except FileExistsError:
            return {"exists": "Files of an earlier export are there."}
        paths = (exported.labelled, exported.filled, exported.report, exported.certificate)
        written: list[Json] = [path.name for path in paths if path is not None]
        reply: Body = {"verdict": exported.verdict, "grounds": exported.grounds}
        return {"files": written, "folder": str(exported.labelled.parent.resolve()), **reply}


class Memory:
    """What was made of a few tables, the last version of each."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[Path, tuple[object, Any]] = {}

    def recall(self, path: Path, key: object, make: Callable[[], Any]) -> Any:
        """Return what was made of a table, made anew if its key is another one."""
        kept = self._kept.pop(path, None)
        if kept is None or kept[0] != key:
            kept = (key, make())
        self._kept[path] = kept  # as the one that was asked for last
        while len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
        return kept[1]

    def forget(self) -> None:
        """Forget all of it."""
        self._kept = {}


class OpenServer:
    """Answers the requests of the page for the whole job.

    A table is opened, described, filled, and labelled.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.label = Server(None)
        self._runs: dict[str, Run] = {}
        self._previews = Memory(MOST_TABLES)
        self._tables = Memory(MOST_TABLES)
        self._answers = Memory(MOST_ANSWERS)
        self._lock = threading.RLock()

    def routes(self) -> list[Route]:
        """Return what is answered."""
        reading = {
            "state": lambda request: self.state(),
            "head": lambda request: self.head(),
            "raw": lambda request: self.raw(),
            "kept": lambda request: self.kept(),
            "sheets": lambda request: self.sheets(),
            "preview": lambda request: Preview.as_json(*self.seen()),
            "outlook": lambda request: outlook(*self.seen()),
            "test": lambda request: Preview.compare(*self.seen()),
            "answers": lambda request: self.answers_of(request).as_json(),
            "rows": lambda request: self.answers_of(request).page(dict(request.query_params)),
            "row": self._row_of_answers,
        }
        acting = {
            "open": self._open,
            "change": self._change,
            "fill": self._fill,
            "label": self._label,
            "begin": self._begin,
            "correct": self._correct,
            "list": self._list,
            "take": self._take,
            "adopt": self._adopt,
            "pictures": lambda body: self.workspace.open(self.workspace.list_pictures()),
            "example": lambda body: self._open({"name": self.workspace.write_example()}),
            "delete": self._delete,
        }
        acting |= {"back": self._back, "cancel": lambda body: self._run.cancel()}
        picture = Route(
            "/open/picture/{row:int}/{column:int}",
            lambda request: _picture(self.preview.shown, request),
        )
        return [
            Route("/", lambda request: _static("open.html")),
            *(
                Route(f"/open/{name}", _reading(answer, folder=self.workspace.folder))
                for name, answer in reading.items()
            ),
            *_acting(
                "/open",
                {name: partial(self._do, do) for name, do in acting.items()},
                self._lock,
                self.workspace.folder,
            ),
            Route("/open/drop", self._drop, methods=["POST"]),
            Route("/open/returned", self._returned, methods=["POST"]),
            Route("/open/file/{name}", self._file),
            picture,
            *self.label.routes("/label", "/"),
        ]

    def _do(self, do: Callable[[Body], None], body: Body) -> Json:
        do(body)
        return self.state()

    # --------------------------------------------------------------------------- what is known now

    @property
    def choices(self) -> Choices:
        """What was said about the open table.

        With the labels of the labelling page, also how these came about.
        """
        return self.seen()[1]

    def seen(self) -> tuple[Preview, Choices]:
        """Return the open table as it is read, and what was said about this one."""
        with self._lock:  # nobody opens another one meanwhile
            preview = self.preview
            return preview, preview.choices(self.workspace.saved.choices)

    @property
    def _run(self) -> Run:
        folder = self.workspace.computed
        return self._runs.setdefault(folder.name, Run(folder))

    @property
    def preview(self) -> Preview:
        """The open table as it is read; read again where the file has changed."""
        with self._lock:
            path = self.workspace.path
            choices = self.workspace.saved.choices
            if choices.labels:
                own_choices = (choices.target, choices.labels)
            else:
                own_choices = None
            key = (path.stat().st_mtime_ns, choices.sheet, choices.layout)

            def read() -> Table | Glance:
                if is_too_large(path):
                    return glance(path, GLANCED_ROWS)
                return tables.read(path, sheet=choices.sheet, layout=choices.layout)

            table = self._tables.recall(path, key, read)
            of_choices = (key, choices.added, own_choices, repr(choices.corrected))
            preview: Preview = self._previews.recall(
                path, of_choices, lambda: Preview(path, choices, self._given(), table)
            )
            return preview

    def head(self) -> JsonObject:
        """Return the first rows of the open table as they are written, while it is being read."""
        path = self.workspace.path
        frame = None
        with suppress(ValueError, OSError):  # what is wrong is said when the table is read
            frame = first_rows(path, FIRST_ROWS)
        if frame is None:
            return {"names": [], "rows": []}
        texts = frame.astype(object).where(frame.notna(), "").astype(str)
        rows = [[escape_text(cell, LONGEST_TEXT) for cell in row] for row in texts.to_numpy()]
        return {"names": [escape_text(name, 80) for name in frame.columns], "rows": rows}

    def raw(self) -> list[Json]:
        """Return the first rows of the open table's file as they stand, each with its number."""
        choices = self.workspace.saved.choices
        rows = raw_rows(self.workspace.path, choices.sheet, RAW_ROWS)
        return [
            {"row": number, "cells": [escape_text(cell, RAW_LETTERS) for cell in cells]}
            for number, cells in rows
        ]

    def sheets(self) -> JsonObject:
        """Return the sheets of the open table, for who chose one that holds no table."""
        with suppress(ValueError, OSError):  # what is wrong is said when the table is read
            original = tables.read(self.workspace.path).original
            return {"sheets": original.sheets, "sheets_are": original.sheets_are}
        return {"sheets": [], "sheets_are": ""}

    def kept(self) -> list[Json]:
        """Return what the page keeps of the open table, and where."""
        return [
            {
                "what": file.what,
                "name": file.path.name,
                "place": file.path.relative_to(self.workspace.folder).as_posix(),
                "bytes": file.bytes,
            }
            for file in self.workspace.kept()
        ]

    def _delete(self, body: Body) -> None:
        """Delete something that the page keeps of the open table."""
        _version(body)
        if self._run.running:
            raise ValueError("A fill is under way: cancel it first.")
        self._end_labelling()
        what, name = (_read(body, word, "a short text") for word in ("what", "name"))
        with self._lock:
            takes_part = what == "labels" and self._is_journal_of_labels(name)
            self._runs.pop(self.workspace.path.name, None)
            self._answers.forget()
            self.workspace.delete(what, name)
            if takes_part:  # what the fill would learn from is deleted with its journal
                (self.workspace.computed / LABELS).unlink(missing_ok=True)
                saved = self.workspace.saved
                self.workspace.change(self.workspace.path.name, saved.revision, {"labels": 0})

    def _is_journal_of_labels(self, name: str) -> bool:
        """Return whether a journal has the labels from which the fill would learn."""
        choices = self.workspace.saved.choices
        if not choices.labels:
            return False
        return self.preview.journal_of(str(choices.target)).name == name

    def _given(self) -> GivenLabels | None:
        """Return the labels of the labelling page that take part.

        None if none do, or if they were lost.
        """
        if not self.workspace.saved.choices.labels:
            return None
        with suppress(LostLabelsError):  # the table can be looked at all the same; a fill refuses
            return GivenLabels.read(self.workspace.computed)
        return None

    @property
    def answers(self) -> AnswerRows:
        """The answers of the last fill."""
        return self._answers_in(self.workspace.computed / RESULT, "Nothing was filled yet.")

    def answers_of(self, request: Request) -> AnswerRows:
        """Return the answers that a request is about: of the first column, or of one filled along.

        That is named by its place, 0 being the first.
        """
        place = int(request.query_params.get("of", 0))
        if place <= 0:
            return self.answers
        folder = self.workspace.computed / RESULT / beside_folder(place)
        return self._answers_in(folder, "This column was not filled along.")

    def _answers_in(self, folder: Path, refusal: str) -> AnswerRows:
        """Return the answers in a folder; a ValueError if there are none."""
        with self._lock:
            if not (folder / "brief.json").exists():
                raise ValueError(refusal)
            preview = self.preview
            key = ((folder / "brief.json").stat().st_mtime_ns, id(preview))
            answers: AnswerRows = self._answers.recall(
                folder, key, lambda: AnswerRows(folder, preview)
            )
            return answers

    def _row_of_answers(self, request: Request) -> Json:
        """Return one row with its cells, its answer, and the known rows most like it."""
        answers = self.answers_of(request)
        choices = self.choices
        if int(request.query_params.get("of", 0)) > 0:
            choices = Choices(**answers.brief["choices"])
        return answers.row(int(request.query_params["row"]), choices)

    def state(self) -> JsonObject:
        """Return where the page is.

        The tables, the open one with what was said about it, and how far a fill is.
        """
        with self.workspace.unchanged():
            return self._state(self.workspace)

    def _state(self, space: Workspace) -> JsonObject:
        known: JsonObject = {"folder": space.folder.name or "/", "tables": space.tables()}
        known["table"] = space.name
        known["ways"] = [asdict(card) for card in CARDS.values()]
        if space.name is None:
            known["pictures"] = len(space.pictures())
            return known
        saved = space.saved
        progress = self._run.progress
        known |= {
            "choices": asdict(saved.choices),
            "revision": saved.revision,
            "notes": space.notes,
        }
        seconds = 0.0
        if progress.state == "running":
            seconds = time.time() - progress.began
        known["run"] = {**asdict(progress), "seconds": seconds}
        known["way"] = saved.choices.way
        known["since"] = ""
        given = self._given()
        if given is not None:
            known["way"] = given.said(saved.choices).way
            known["since"] = given.about_since
        known["filled"] = None
        with suppress(FileNotFoundError):  # nothing was filled yet, or the result is being replaced
            known["filled"] = (space.computed / RESULT / "brief.json").stat().st_mtime_ns
        return known

    # -------------------------------------------------------------------------------- what is done

    def _open(self, body: Body) -> None:
        name = body.get("name")
        if name is not None:
            name = str(name)
        self._end_labelling()
        self.workspace.open(name)

    def _change(self, body: Body) -> None:
        changes = body.get("changes")
        if not isinstance(changes, dict):
            raise ValueError("Say what to change.")
        if {"header", "rows"} & set(changes):
            self._check_rows_may_move()
        picked = changes.get("picked")
        if isinstance(picked, dict):
            changes = {"column": None, **changes, "way": self._way_of_picked(picked)}
        self.workspace.change(*_version(body), changes)

    def _check_rows_may_move(self) -> None:
        """Raise a ValueError if values were given to rows, which would then be other rows."""
        if self.workspace.saved.choices.corrected or journals_of(self.workspace.path):
            raise ValueError(
                "Values were given to rows of this table on this page, by their places: these "
                "would be other rows. Delete them first, under “What is kept of this table”."
            )

    def _way_of_picked(self, picked: Body) -> str | None:
        """Return the card that the answers on picked rows lead to; None until all are there."""
        labels = self.preview.target(self.choices)
        answers = {name: value is True for name, value in picked.items()}
        return way_of_picked(answers, classes=labels.task == "classification")

    def _correct(self, body: Body) -> None:
        """Take what a person says of one known value: it is right, or what it is instead."""
        row = _read(body, "row", "a whole number")
        choices = self.workspace.saved.choices
        cells = self.preview.original.frame[choices.target]
        if not 0 <= row < len(cells):
            raise ValueError(f"There is no row {row + 1}.")
        corrected = [line for line in choices.corrected if line["row"] != row]
        right = [other for other in choices.right if other != row]
        if body.get("right"):
            right.append(row)
        elif "now" in body:
            now = cell_like(cells, self.preview.target(choices), body["now"])
            was = file_cell(cells.iloc[row])
            name = name_row(row, self.preview.original.lines)
            corrected.append({"row": row, "name": name, "was": was, "now": now})
        self.workspace.change(*_version(body), {"corrected": corrected, "right": right})

    def _fill(self, body: Body) -> None:
        saved = self.workspace.seen(*_version(body))
        if saved.choices.labels:
            GivenLabels.read(self.workspace.computed)  # refuses if they were lost
        for name in saved.choices.targets:  # refuses what cannot be filled at once
            self.preview.target(self.choices.of_column(name))
        saved = self.workspace.change(*_version(body), {"step": "answers"})
        in_parts = self.preview.glance is not None
        self._run.start(self.workspace.path, saved.choices, in_parts=in_parts)

    def _begin(self, body: Body) -> None:
        """Open the labelling page with a column that has no label yet, or that is added now.

        The person says what its labels are.
        """
        name = _read(body, "target", "a short text").strip()
        if not name:
            raise ValueError("Give the column a name.")
        classes, task = _named_classes(body)
        frame = self.preview.frame
        columns = list(map(str, frame.columns))
        changes: JsonObject = {"target": name, "task": task}
        if name not in columns:
            changes["added"] = name
        elif body.get("added") and name != self.workspace.saved.choices.added:
            raise ValueError(f"The table has a column {name!r} already: choose another name.")
        elif frame[frame.columns[columns.index(name)]].notna().any():
            raise ValueError(f"{name!r} has labels already: choose it as the column to fill.")
        predictions = body.get("predictions")
        if predictions is not None:
            classes = []
            if predictions not in columns or predictions == name:
                raise ValueError("Choose the column of predictions among the others.")
            changes["predictions"] = [predictions]  # once some are checked, a fill corrects them
        self.workspace.change(*_version(body), changes)
        journal = self.preview.journal_of(name)
        with self.label.lock:
            self._end_labelling()
            if classes and journal.exists() and not holds_decisions(journal):
                journal.unlink()  # of classes that were named before, and perhaps misspelt
        self._open_labelling(classes=classes, mode=None, predictions=predictions)

    def _label(self, body: Body) -> None:
        """Open the labelling page with the same table, target and level.

        Random draws are asked for at once.
        """
        mode = "learn"
        if body.get("draw"):
            mode = "audit"
        self._open_labelling(classes=[], mode=mode)

    def _open_labelling(
        self, classes: list[str], mode: str | None, predictions: Json = None
    ) -> None:
        """Open a session of the chosen column; without a mode it is the session's own."""
        choices = self.workspace.saved.choices
        path = self.workspace.path
        if choices.target is None:
            raise ValueError("Choose the column to fill first.")
        with self.label.lock:
            self._end_labelling_elsewhere()
            self.label.end()
            gone = {*choices.ignore, choices.id, choices.target, f"{choices.target}_random"}
            gone.add(choices.added)
            show = [name for name in self.preview.shown.show if name not in gone][:MOST_SHOWN]
            table = read_label_table(path, choices.target, show, choices.sheet, choices.layout)
            table = replace(
                table,
                frame=self._known_as_read(choices.options().clean(table.frame), choices),
                keep=tuple(choices.keep),
                case_sensitive=choices.case_sensitive,
                codes=self.preview.codes,
            )
            settings = self._session_settings(choices, table.n_rows)
            checked = None
            if predictions is not None:
                checked = str(predictions)
            session = Session(
                table,
                choices.target,
                classes=classes,
                predictions=checked,
                settings=settings,
            )
            self.label.begin(session, path.name)
            if mode is not None:
                session.propose(mode)

    def _known_as_read(self, frame: pd.DataFrame, choices: Choices) -> pd.DataFrame:
        """Return the rows of a session with the known values that the fill would learn from.

        Those are corrected ones, and the numbers in cells that hold more than a number.
        """
        target = str(choices.target)
        if target not in choices.number and not choices.corrected:
            return frame
        table = as_chosen(self.preview.original, choices)
        cells = choices.options().clean(table.frame[[target]])[target]
        if target in choices.number:
            labels = FrameSource.read(table, target, choices.options()).labels
            if labels.task == "regression":
                cells = pd.Series(labels.labels, dtype=float).mask(labels.missing)
        return frame.assign(**{target: cells.to_numpy()})

    def _session_settings(self, choices: Choices, n_rows: int) -> SessionSettings:
        """Return the settings of a labelling session that say what was chosen here."""
        options = choices.options()
        if options.id is None:
            names_rows = []
        else:
            names_rows = [options.id]
        return SessionSettings(
            confidence=choices.confidence,
            task=SESSION_TASKS[choices.task],
            labels_by_class=choices.way == "class",
            ignore=[*options.no_features(choices.target), *names_rows, *self.preview.table.index],
            text=options.text,
            number=options.number,
            minimum=options.minimum,
            maximum=options.maximum,
            first=self._advised(choices, n_rows),
            wait=False,
        )

    def _advised(self, choices: Choices, n_rows: int) -> list[int]:
        """Return the rows that the last fill would have labelled, if it was of this column."""
        if not (self.workspace.computed / RESULT / "brief.json").exists():
            return []
        brief = self.answers.brief
        same = brief["choices"]["target"] == choices.target and brief["counts"]["rows"] == n_rows
        if same:
            return list(brief["advised"])
        return []

    def _end_labelling(self) -> None:
        """End the session of the open table; another tab may label another one."""
        with self.label.lock:
            if self._labels_here:
                self.label.end()

    def _end_labelling_elsewhere(self) -> None:
        """End a session of another table, since one is labelled at a time, and keep its labels."""
        table = self.label.table
        if self.label.session is None or table is None or self._labels_here:
            return
        here = TABLE.set(table)
        try:
            if self.workspace.name is not None:  # it is still in the folder
                self._back({})
        finally:
            TABLE.reset(here)

    @property
    def _labels_here(self) -> bool:
        """Whether there is a session, of the open table."""
        return self.label.session is not None and self.label.table == self.workspace.name

    def _list(self, body: Body) -> None:
        """Write a list of rows to take away: drawn at random, or those that would help most."""
        kind = _read(body, "kind", "a short text")
        number = _read(body, "number", "a whole number")
        if not 1 <= number <= lists.MOST_ROWS:
            raise ValueError(f"A list has 1 to {lists.MOST_ROWS:,} rows.")
        with self.label.lock:
            self._open_labelling(classes=[], mode=None)
            session = self.label.session
            assert session is not None
            try:
                self._write_list(session, kind, number)
            finally:
                self._end_labelling()

    def _write_list(self, session: Session, kind: str, number: int) -> None:
        if kind == "random":
            rows = lists.draw_rows(session, number)
        else:
            rows = [row for row in session.settings.first if session.state.pool[row]][:number]
        if not rows:
            raise ValueError("Fill the table first: then it is known which rows would help.")
        target = str(self.workspace.saved.choices.target)
        taken = lists.TakenList(target, kind, rows)
        folder = self.workspace.computed
        make_folder(folder, private=True)
        frame = self.preview.original.frame
        lists.write_taken(folder, frame, session, taken, [self.workspace.path])

    async def _returned(self, request: Request) -> Response:
        """Look through a list that came back; nothing is taken yet."""
        ending = Path(request.query_params.get("name", "")).suffix.lower()
        if ending not in LIST_ENDINGS:
            return _json({"error": "Bring the list back as .xlsx or .csv."}, 400)
        content = b""
        async for part in request.stream():
            content += part
            if len(content) > LONGEST_LIST:
                return _json({"error": "This is too large for a list."}, 413)
        make_folder(self.workspace.computed, private=True)
        file = self.workspace.computed / f"returned{ending}"
        with whole_file(file, force=True, like=[self.workspace.path]) as returned:
            returned.write(content)
        review = partial(self._review, ending)
        return await run_in_threadpool(_reply, review, self._lock, self.workspace.folder)

    def _review(self, ending: str) -> Json:
        """Return what a list that came back holds."""
        rows: list[Json] = [asdict(row) for row in self._read_returned(ending)]
        taken = self._taken_list()
        is_random = taken.kind == "random"
        return {"rows": rows, "listed": len(taken.rows), "random": is_random, "ending": ending}

    def _taken_list(self) -> lists.TakenList:
        taken = lists.TakenList.read(self.workspace.computed)
        if taken.target != self.workspace.saved.choices.target:
            raise ValueError(f"The list was of column {taken.target!r}: choose it first.")
        return taken

    def _read_returned(self, ending: str) -> list[lists.ReturnedRow]:
        """Return the rows of a list that came back; the labelling session is open then."""
        if ending not in LIST_ENDINGS:
            raise ValueError("Bring the list back as .xlsx or .csv.")
        taken = self._taken_list()
        file = self.workspace.computed / f"returned{ending}"
        returned = tables.read(file).frame
        original = self.preview.original
        with self.label.lock:
            if not self._labels_here:
                self._open_labelling(classes=[], mode=None)
            session = self.label.session
            assert session is not None
            try:
                return lists.review(original.frame, returned, taken, session, original.lines)
            finally:
                self._end_labelling()

    def _take(self, body: Body) -> None:
        """Take what came back in a list: values that fit, and odd ones named by their places."""
        ending = str(body.get("ending", ""))
        odd = body.get("odd")
        if isinstance(odd, list):
            named = set(odd)
        else:
            named = set()
        returned = enumerate(self._read_returned(ending))
        rows = [row for place, row in returned if not row.problem or place in named]
        with self.label.lock:
            self._open_labelling(classes=[], mode=None)
            session = self.label.session
            assert session is not None
            lists.take_values(session, rows)
        self._back(body)

    def _adopt(self, body: Body) -> None:
        """Let a corrected copy of a table keep what was said of the table before."""
        name, before = (_read(body, word, "a short text") for word in ("name", "before"))
        given = None
        with suppress(LostLabelsError):  # none was given
            given = GivenLabels.read(self.workspace.computed_of(before))
        said = self.workspace.said_of(before)
        old, new = (
            tables.read(self.workspace.path_of(table), sheet=said.sheet, layout=said.layout)
            for table in (before, name)
        )
        adopted = corrected_copy.adopt(said, given, old, new)
        self.workspace.adopt(name, adopted.choices, adopted.notes)

    def _back(self, body: Body) -> None:
        """Take the labels of the labelling page with which to fill again, and close it."""
        from transduce.app.labelling import export  # the first row needs none of it

        with self.label.lock:
            session = self.label.session
            if session is None or not self._labels_here:  # another tab was quicker
                return
            labels, drawn = export.labels_to_fill(session)
            needed = session.state.block_size(session.settings.confidence)
            given = GivenLabels(labels, drawn, export.labels_since_block(session), needed)
            version = session.state.n_events
            given.write(self.workspace.computed, self.workspace.path)
            self._end_labelling()
        saved = self.workspace.saved
        changes: JsonObject = {"labels": 0}
        if given.labels:
            changes = {"labels": version}
        if given.labels and saved.choices.step == "table":  # the column has values now
            changes["step"] = "labels"
        self.workspace.change(self.workspace.path.name, saved.revision, changes)

    async def _drop(self, request: Request) -> Response:
        """Keep a file that was dropped."""
        try:
            name = await self.workspace.keep(request.query_params.get("name", ""), request.stream())
        except (ValueError, OSError) as error:
            return _json({"error": as_sentence(error)}, 400)
        return _json({"name": name})

    def _file(self, request: Request) -> Response:
        """Return a file of the last fill.

        The filled table, also with the rows to trust, the report, or the numbers.
        """
        wanted = request.path_params["name"]
        folder = self.workspace.computed / RESULT
        names = ("filled", "trusted", "report", "show", "numbers")
        if wanted == "list" and (folder.parent / lists.LIST).is_file():
            called = result_name(self.workspace.path, "to-fill-in", ".xlsx")
            return FileResponse(folder.parent / lists.LIST, filename=called)
        if not (folder / "brief.json").exists() or wanted not in names:
            return PlainTextResponse("There is no such file.", 404)
        table = Path(str(self.answers.brief["filled"])).name
        of = request.query_params.get("of", "0")
        if wanted in ("report", "show", "numbers") and of.isdecimal() and int(of):
            folder = folder / beside_folder(int(of))
        file = folder / {"filled": table, "numbers": "numbers.json"}.get(wanted, "report.html")
        if not file.is_file():  # of a table in parts
            return PlainTextResponse("There is no such file.", 404)
        if wanted == "show":
            return FileResponse(file, headers={"content-security-policy": REPORT_POLICY})
        if wanted in ("filled", "trusted"):
            ending = None
        else:
            ending = file.suffix
        if wanted == "trusted":
            try:
                file = self.answers_of(request).with_trusted(request.query_params)
            except Exception as error:  # whatever it is, the page says so
                return PlainTextResponse(as_sentence(error), 400)
        called = result_name(self.workspace.path, wanted, ending)
        return FileResponse(file, filename=called, media_type="application/octet-stream")


def _version(body: Body) -> tuple[str, int]:
    """Return the table, and the version of what was said about it, that a request is about."""
    return _read(body, "table", "a short text"), _read(body, "revision", "a whole number")


def _named_classes(body: Body) -> tuple[list[str], str]:
    """Return the classes that a request names, and the task: none are numbers.

    A session that goes on has its own.
    """
    classes = body.get("classes")
    if classes is None:
        return [], "auto"
    if not isinstance(classes, list):
        raise ValueError("classes is a list of names.")
    names = list(dict.fromkeys(str(label).strip() for label in classes))
    names = [label for label in names if label]
    if not classes:
        return [], "regression"
    if len(names) < 2:
        raise ValueError("Name at least two classes, each in a line of its own.")
    if len(names) > MOST_CLASSES or any(len(label) > LONGEST_TEXT for label in names):
        raise ValueError(f"Name at most {MOST_CLASSES} classes, each in a few words.")
    return names, "classification"


def _reply(
    answer: Callable[[], Any], lock: Lock | None = None, folder: Path | None = None
) -> Response:
    """Return what a function gives as JSON, or what it refuses as a sentence."""
    try:
        with lock or nullcontext(), options_spelled(spell_for_page):
            return _json(answer())
    except EndedError as error:
        return _json({"ended": str(error)})
    except StaleError as error:
        return _json({"error": as_sentence(error)}, 409)
    except Exception as error:  # whatever it is, the page says so and goes on
        return _json({"error": as_sentence(error, folder)}, 400)


def _failed(request: Request, error: Exception) -> Response:
    """Return what went wrong where no handler said so itself."""
    return _json({"error": as_sentence(error)}, 500)


def _json(answer: Any, status: int = 200) -> Response:
    """Return an answer as JSON in plain letters, since names of files need not be UTF-8."""
    return Response(json.dumps(answer, allow_nan=False), status, media_type="application/json")


def _reading(
    answer: Callable[[Request], Any], lock: Lock | None = None, folder: Path | None = None
) -> Callable[[Request], Response]:
    """Return a handler that answers with what a function makes of the request."""
    return lambda request: _reply(lambda: answer(request), lock, folder)


def _acting(
    under: str,
    actions: dict[str, Callable[[Body], Any]],
    lock: Lock,
    folder: Path | None = None,
) -> list[Route]:
    """Return the addresses of actions, each of which takes what a request carries."""

    async def act(request: Request) -> Response:
        body = await _body(request)
        do = actions[request.scope["path"].removeprefix(f"{under}/")]
        if isinstance(body, Response):
            return body
        return await run_in_threadpool(_reply, lambda: do(body), lock, folder)

    return [Route(f"{under}/{name}", act, methods=["POST"]) for name in actions]


def _static(name: str) -> Response:
    """Return a file of the page."""
    file = files("transduce.app.page").joinpath("static", name)
    kind = MEDIA_TYPES.get(Path(name).suffix)
    if kind is None or "/" in name or "\\" in name or not file.is_file():
        return PlainTextResponse("There is no such page.", 404)
    return Response(file.read_bytes(), media_type=kind)


def _picture(table: LabelTable, request: Request) -> Response:
    """Return the picture in a cell."""
    file = table.image(request.path_params["row"], request.path_params["column"])
    if file is None:
        return PlainTextResponse(
            "Forbidden: images are shown from below the table's folder only.", 403
        )
    if isinstance(file, Path) and file.suffix.lower() not in (".tif", ".tiff"):
        return FileResponse(str(file), media_type=IMAGES[file.suffix.lower()])
    shown = preview(file)
    if shown is None:
        return PlainTextResponse("No picture.", 404)
    return Response(shown, media_type="image/png")


async def _body(request: Request) -> Body | Response:
    """Return the JSON that a request carries, or the refusal of anything else."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return PlainTextResponse("Send JSON.", 415)
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > LONGEST_BODY:
            return PlainTextResponse("Too long.", 413)
    try:
        body = json.loads(content or b"{}")
    except ValueError:
        return PlainTextResponse("This is not JSON.", 400)
    if isinstance(body, dict):
        return body
    return PlainTextResponse("Send an object.", 400)


def _read(body: Body, name: str, what: str) -> Any:
    """Read and type-check one field of a request."""
    value = body.get(name)
    if (
        not isinstance(value, FIELDS[what])
        or isinstance(value, bool)
        or len(str(value)) > LONGEST_TEXT
    ):
        raise ValueError(f"{name} must be {what}.")
    return value


def listen(port: int = 0) -> socket.socket:
    """Return a socket that listens on this machine's own address; port 0 is any free one."""
    try:
        return socket.create_server(("127.0.0.1", port), backlog=64)
    except OSError as error:
        raise OSError(f"Port {port} is taken: choose another one, or leave it out.") from error


def make_server(
    served: Session | Workspace, listening: socket.socket
) -> tuple[uvicorn.Server, str]:
    """Return a web server for a session or a folder of tables, and its address.

    The server listens on this socket; the address works once.
    """
    port = int(listening.getsockname()[1])
    token = secrets.token_urlsafe(24)
    routes = (Server(served) if isinstance(served, Session) else OpenServer(served)).routes()
    handlers: dict[Any, Any] = {Exception: _failed}
    app = Starlette(routes=routes, exception_handlers=handlers)
    guarded = Guard(app, port=port, token=token)
    silent: JsonObject = {"log_level": "critical", "access_log": False, "server_header": False}
    plain: JsonObject = {"lifespan": "off", "ws": "none", "http": "h11", "loop": "asyncio"}
    config = uvicorn.Config(guarded, timeout_graceful_shutdown=1, **silent, **plain)
    return uvicorn.Server(config), f"http://127.0.0.1:{port}/?token={token}"
