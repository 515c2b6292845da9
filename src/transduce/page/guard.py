"""Who may use the server: one browser on this computer, with the token from the terminal, and no other page."""

from __future__ import annotations

import secrets

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/">'
    "<title>transduce</title></head><body><p>Opening …</p></body></html>"
)


class Guard:
    """Lets through only requests to this address, from its own page, with the cookie that the one-time key gives."""

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        self._app, self._token, self._used = app, token, False
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

        await (self._refusal(Request(scope)) or self._app)(scope, receive, sending)

    def _refusal(self, request: Request) -> Response | None:
        """Return the answer to a request that must not go through; None if it may."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
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
        key = request.query_params.get("token", "") if request.scope["path"] == "/" else ""
        if self._used or not secrets.compare_digest(key.encode(), self._token.encode()):
            return PlainTextResponse(
                "Forbidden: open the address that the command printed. It works once, in one browser; start the "
                "command again for a new one.",
                403,
            )
        self._used = True
        # A page that leads on by itself, not a redirect: the strict cookie is then sent also if a link led here.
        response = HTMLResponse(ENTER)
        response.set_cookie(self._cookie_name, self._secret, httponly=True, samesite="strict", path="/")
        return response
