"""A session served for a test, and a plain client that says exactly what it is told to."""

from __future__ import annotations

import http.client
import json
import threading
import time
from dataclasses import dataclass

from transduce.app.page.server import listen, make_server


@dataclass
class Reply:
    status: int
    headers: dict
    content: bytes

    def json(self):
        return json.loads(self.content)


class Served:
    """A server in a thread of its own, for the time of a with block."""

    def __init__(self, session):
        self._listening = listen()
        self.port = self._listening.getsockname()[1]
        self.server, self.address = make_server(session, self._listening)
        self._thread = threading.Thread(
            target=self.server.run, kwargs={"sockets": [self._listening]}
        )

    def __enter__(self):
        self._thread.start()
        while not self.server.started:
            assert self._thread.is_alive(), "The server did not start."
            time.sleep(0.005)
        return self

    def __exit__(self, *error):
        self.server.should_exit = True
        self._thread.join(30)
        self.server.force_exit = True  # somebody waits for an answer that does not come
        self._thread.join()
        self._listening.close()


class Client:
    """A browser as far as headers go: it keeps a cookie, and names the page's origin when it posts."""

    def __init__(self, served, *, enter=True):
        self.served, self.cookie = served, None
        self.origin = f"http://127.0.0.1:{served.port}"
        self.path = served.address.removeprefix(self.origin)
        if enter:
            reply = self.get(self.path)
            assert reply.status == 200
            self.cookie = reply.headers["set-cookie"].partition(";")[0]

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.served.port)
        sent = {
            "host": f"127.0.0.1:{self.served.port}",
            **({"cookie": self.cookie} if self.cookie else {}),
        }
        sent |= headers or {}
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in {**sent, "content-length": str(len(body or b""))}.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(body)
        found = connection.getresponse()
        reply = Reply(
            found.status, {name.lower(): value for name, value in found.getheaders()}, found.read()
        )
        connection.close()
        return reply

    def get(self, path, headers=None):
        return self.ask("GET", path, headers=headers)

    def post(self, path, body=None, headers=None, content=None):
        content = json.dumps({} if body is None else body).encode() if content is None else content
        sent = {"origin": self.origin, "content-type": "application/json", **(headers or {})}
        return self.ask("POST", path, content, sent)
