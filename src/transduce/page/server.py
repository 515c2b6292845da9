"""The local web server: a thin client of `Session`, on this machine's own address only."""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from transduce.labelling.journal import Label
from transduce.labelling.session import Session
from transduce.labelling.table import IMAGES
from transduce.page import view as views
from transduce.page.guard import Guard
from transduce.page.view import Json
from transduce.tables.pictures import preview

LONGEST_BODY = 64_000
LONGEST_TEXT = 200
FIELDS = {"a short text": str, "a whole number": int, "a number": int | float | None}
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
Body = dict[str, Json]


class Server:
    """Answers the page's requests, one at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._actions: dict[str, Callable[[Body], object]] = {
            "answer": self._answer,
            "skip": lambda body: session.skip(),
            "undo": lambda body: session.undo(),
            "mode": lambda body: session.propose(_read(body, "mode", "a short text")),
            "want": lambda body: session.want(self._class(body)),
            "class": lambda body: session.add_class(_read(body, "name", "a short text")),
            "freeze": lambda body: session.freeze(_read(body, "tolerance", "a number")),
            "plan": lambda body: session.plan_draws(_read(body, "count", "a whole number")),
            "pause": lambda body: session.think(),
        }

    def app(self) -> Starlette:
        """Return the application, without its guard."""
        routes = [
            Route("/", self._page),
            Route("/page/{name}", self._page),
            Route("/favicon.ico", lambda request: Response(status_code=204)),
            Route("/image/{row:int}/{column:int}", self._image),
            Route("/api/about", self._reading(lambda request: views.about(self._session))),
            Route("/api/view", self._reading(lambda request: views.view(self._session))),
            Route("/api/history", self._reading(self._history)),
            Route("/api/search", self._reading(self._search)),
            Route("/api/row/{row:int}", self._reading(self._row)),
            Route("/api/{action}", self._act, methods=["POST"]),
        ]
        return Starlette(routes=routes)

    def _reply(self, answer: Callable[[], Json]) -> Response:
        """Return what a function gives as JSON, or what it refuses as a sentence."""
        try:
            with self._lock:
                return Response(json.dumps(answer(), allow_nan=False), media_type="application/json")
        except (ValueError, TypeError, OverflowError, OSError) as error:
            return Response(json.dumps({"error": str(error)}), 400, media_type="application/json")

    # ------------------------------------------------------------------------------------------------ reading

    async def _page(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        file = files("transduce.page").joinpath("static", name)
        kind = KINDS.get(Path(name).suffix)
        if kind is None or "/" in name or "\\" in name or not file.is_file():
            return PlainTextResponse("There is no such page.", 404)
        return Response(file.read_bytes(), media_type=kind)

    async def _image(self, request: Request) -> Response:
        file = self._session.table.image(request.path_params["row"], request.path_params["column"])
        if file is None:
            return PlainTextResponse("Forbidden: images are shown from below the table's folder only.", 403)
        if isinstance(file, Path) and file.suffix.lower() not in (".tif", ".tiff"):
            return FileResponse(str(file), media_type=IMAGES[file.suffix.lower()])
        shown = await run_in_threadpool(preview, file)
        return (
            PlainTextResponse("No picture.", 404)
            if shown is None
            else Response(shown, media_type="image/png")
        )

    def _reading(self, answer: Callable[[Request], Json]) -> Callable[[Request], Response]:
        """Return a handler that answers with what a function makes of the request."""
        return lambda request: self._reply(lambda: answer(request))

    def _history(self, request: Request) -> Json:
        start = int(request.query_params.get("start", 0))
        count = int(request.query_params.get("count", 200))
        return views.history(self._session, max(start, 0), min(max(count, 1), 200))

    def _search(self, request: Request) -> Json:
        session, words = self._session, request.query_params.get("words", "")
        lines: list[Json] = []
        for row in session.search(words[:LONGEST_TEXT]):
            label = session.state.label_of(row)
            shown = None if label is None else str(label)
            lines.append({"row": row, "title": session.table.title(row), "label": shown})
        return lines

    def _row(self, request: Request) -> Json:
        row = int(request.path_params["row"])
        if row >= self._session.table.n_rows:
            raise ValueError(f"There is no row {row}.")
        return views.row_card(self._session, row, self._session.answers())

    # ------------------------------------------------------------------------------------------------- acting

    async def _act(self, request: Request) -> Response:
        name = request.path_params["action"]
        if name != "export" and name not in self._actions:
            return PlainTextResponse("There is no such action.", 404)
        body = await _body(request)
        if isinstance(body, Response):
            return body
        return await run_in_threadpool(self._reply, lambda: self._do(name, body))

    def _do(self, name: str, body: Body) -> Json:
        """Do what the page asks for, and return what it shows then."""
        if name == "export":
            return self._export(force=bool(body.get("force")))
        self._actions[name](body)
        return views.view(self._session)

    def _answer(self, body: Body) -> None:
        label = self._class(body) if self._session.task == "classes" else body.get("label")
        if isinstance(label, dict | list):
            raise ValueError("A label is a number or a class.")
        self._session.answer(label, row=_read(body, "row", "a whole number"))

    def _class(self, body: Body) -> Label:
        """Return the class that a request names by its place."""
        code, classes = _read(body, "class", "a whole number"), self._session.classes
        if not 0 <= code < len(classes):
            raise ValueError(f"There is no class number {code}.")
        return classes[code]

    def _export(self, *, force: bool) -> Json:
        try:
            done = self._session.export(force=force)
        except FileExistsError as error:
            return {"exists": str(error)}
        paths = (done.labelled, done.filled, done.report, done.certificate)
        written: list[Json] = [path.name for path in paths if path is not None]
        return {"files": written, "folder": str(done.labelled.parent), "guarantee": done.guarantee}


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
    return body if isinstance(body, dict) else PlainTextResponse("Send an object.", 400)


def _read(body: Body, name: str, what: str) -> Any:
    """Return a value that a request carries, if it is what it is to be."""
    value = body.get(name)
    if not isinstance(value, FIELDS[what]) or isinstance(value, bool) or len(str(value)) > LONGEST_TEXT:
        raise ValueError(f"{name} must be {what}.")
    return value


def listen(port: int = 0) -> socket.socket:
    """Return a socket that listens on this machine's own address; port 0 is any free one."""
    try:
        return socket.create_server(("127.0.0.1", port), backlog=64)
    except OSError as error:
        raise OSError(f"Port {port} is taken: choose another one, or leave it out.") from error


def make_server(session: Session, listening: socket.socket) -> tuple[uvicorn.Server, str]:
    """Return a web server for a session, to be run on this socket, and the address to open, which works once."""
    port, token = int(listening.getsockname()[1]), secrets.token_urlsafe(24)
    guarded = Guard(Server(session).app(), port=port, token=token)
    silent: dict[str, Any] = {"log_level": "critical", "access_log": False, "server_header": False}
    plain: dict[str, Any] = {"lifespan": "off", "ws": "none", "http": "h11", "loop": "asyncio"}
    config = uvicorn.Config(guarded, timeout_graceful_shutdown=1, **silent, **plain)
    return uvicorn.Server(config), f"http://127.0.0.1:{port}/?token={token}"
