"""The server: a thin client of the session, for one browser of this machine only."""

from __future__ import annotations

import http.client
import re
import socket
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.utils import Bunch

from tests.app.labelling.processes import Running, serve_page
from tests.app.labelling.tables import clusters, new_session, numbers, prepared
from transduce.app.labelling import Session, SessionSettings
from transduce.app.page import view

pytest.importorskip(
    "starlette", reason="NOT TESTED: the labelling page, because starlette is not installed."
)
pytest.importorskip(
    "uvicorn", reason="NOT TESTED: the labelling page, because uvicorn is not installed."
)
from tests.app.page.serving import Client, Served
from transduce.app.page.server import HEADERS, listen

PAGE = Path(view.__file__).parent / "static"


@pytest.fixture
def entered():
    session, truth = new_session()
    with session, Served(session) as served:
        yield Client(served), session, truth


def judge(client, truth, count=1):
    for _ in range(count):
        row = client.get("/api/view").json()["proposal"]["row"]
        done = client.post("/api/answer", {"row": row, "class": 0 if truth[row] == "yes" else 1})
        assert done.status == 200
    return done.json()


# ------------------------------------------------------------------------------------------------- exact


def test_a_session_by_requests(entered):
    client, session, truth = entered
    about = client.get("/api/about").json()
    assert (about["name"], about["target"], about["n_rows"]) == ("table", "relevant", 60)
    assert len(about["map"]["x"]) == 60
    shown = judge(client, truth, 8)
    assert shown["progress"]["labelled"] == len(session.state.labels) == 8
    assert shown["classes"][0]["name"] == "yes"
    row = shown["proposal"]["row"]
    skipped = client.post("/api/skip").json()
    assert skipped["proposal"]["row"] != row
    undone = client.post("/api/undo").json()
    assert undone["proposal"]["row"] == row
    assert "took its label back" in undone["proposal"]["why"]
    drawn = client.post("/api/mode", {"mode": "audit"}).json()
    assert drawn["proposal"]["random"]
    assert drawn["proposal"]["answer"] is None  # not to sway the person
    assert client.get(f"/api/row/{drawn['proposal']['row']}").json()["answer"] is None
    judge(client, truth, 3)
    assert (
        client.post("/api/freeze").json()["certificate"]["answers"]["headline"]
        == "Nothing is certain yet."
    )
    judge(client, truth)
    planned = client.post("/api/plan", {"count": 5})
    assert planned.status == 400
    assert "waiting" in planned.json()["error"]
    history = client.get("/api/history").json()
    assert [line["row"] for line in history] == [*session.state.decisions][::-1]
    found = client.get("/api/search?words=apple").json()
    assert {line["row"] for line in found} == set(np.flatnonzero(truth == "yes").tolist())
    assert client.get("/api/search?words=").json() == []


def test_view_is_the_same_without_a_server(entered):
    client, session, _ = entered
    assert client.get("/api/view").json() == view.view(session)


def test_an_earlier_decision_is_changed(entered):
    client, session, truth = entered
    judge(client, truth, 3)
    row = client.get("/api/history").json()[-1]["row"]
    before = session.state.labels[row]
    client.post("/api/answer", {"row": row, "class": 1 if before == "yes" else 0})
    assert session.state.labels[row] != before
    assert client.get(f"/api/row/{row}").json()["decision"]["changed"]


def test_the_whole_history_can_be_read_in_parts(entered):
    client, session, truth = entered
    judge(client, truth, 7)
    rows = [*session.state.decisions][::-1]
    parts = [client.get(f"/api/history?start={start}&count=3").json() for start in (0, 3, 6, 9)]
    assert [[line["row"] for line in part] for part in parts] == [rows[:3], rows[3:6], rows[6:], []]
    assert [client.get(f"/api/row/{row}").json()["step"] for row in rows] == list(range(7))
    assert client.get("/api/history?start=x").status == 400
    assert len(client.get("/api/history?start=-5&count=-5").json()) == 1


def test_numbers():
    frame, truth = numbers(60)
    session = Session(frame, "y", settings=SessionSettings(task="numbers", seed=0))
    with session, Served(session) as served:
        label_numbers(Client(served), truth)


def label_numbers(client, truth):
    for _ in range(12):
        row = client.get("/api/view").json()["proposal"]["row"]
        shown = client.post("/api/answer", {"row": row, "label": float(truth[row])}).json()
    assert shown["classes"] == []
    assert shown["map"]["low"] < shown["map"]["high"]
    assert len(shown["uncertain"]) == 8
    assert client.get("/api/row/1").json()["bounds"] is not None
    assert client.post("/api/answer", {"row": 1, "label": "x"}).status == 400
    assert client.post("/api/freeze").status == 400
    assert client.post("/api/freeze", {"tolerance": 0.5}).status == 200


def test_a_typed_number_is_asked_about_before_it_is_saved():
    """One that can be read in two ways, or is far from all known ones; what is sent as a number is meant so."""
    prices = pd.Series([73_755.0, 252_100.0, 398_000.0, 1_250_000.0, *[np.nan] * 16])
    session = Session(pd.DataFrame({"size": range(20), "price": prices}), "price")
    with session, Served(session) as served:
        client = Client(served)

        def typed(label):
            return client.post("/api/answer", {"row": 9, "label": label}).json()

        known = {"low": 73_755.0, "high": 1_250_000.0}
        assert typed("410.000")["ask"] == {"values": [410_000.0, 410.0]}
        assert typed("410")["ask"] == {"values": [410.0], **known}
        assert typed("41,000,000")["ask"] == {"values": [41_000_000.0], **known}
        assert typed("-73755")["ask"] == {"values": [-73_755.0], **known}
        assert session.state.labels == {}
        assert "ask" not in typed("60000")
        assert "ask" not in typed("2.000.000")
        assert "ask" not in typed(410)
        assert session.state.labels == {9: 410.0}


def test_export_by_request(tmp_path):
    frame, _ = clusters()
    frame.to_csv(tmp_path / "papers.csv", index=False)
    settings = SessionSettings(seed=1, prepared=prepared())
    with (
        Session(tmp_path / "papers.csv", "relevant", settings=settings) as session,
        Served(session) as served,
    ):
        client = Client(served)
        client.post("/api/answer", {"row": 0, "class": 0})
        done = client.post("/api/export").json()
        assert done["files"] == ["papers-labelled.csv", "papers-certificate.txt"]
        assert done["verdict"] == "The table could not be filled."
        assert (
            client.post("/api/export").json()["exists"] == "Files of an earlier export are there."
        )
        assert "files" in client.post("/api/export", {"force": True}).json()


# ------------------------------------------------------------------------------------------------- safety


def test_every_answer_carries_the_policy(entered):
    client, _, _ = entered
    for path in ("/", "/page/main.js", "/api/view", "/nothing", "/image/0/0"):
        headers = client.get(path).headers
        for name, value in HEADERS.items():
            assert headers[name] == value
    assert "unsafe" not in HEADERS["content-security-policy"]
    assert HEADERS["content-security-policy"].startswith("default-src 'none'")


def test_the_key_works_once_and_becomes_a_strict_cookie():
    session, _ = new_session()
    with session, Served(session) as served:
        client = Client(served, enter=False)
        token = client.path.removeprefix("/?token=")
        assert client.get("/").status == 403
        assert client.get("/api/view").status == 403
        assert client.get("/?token=wrong").status == 403
        assert client.get(f"/api/view?token={token}").status == 403
        entered = Client(served)
        cookie = client.get(client.path)
        assert cookie.status == 403  # used up
        assert entered.get("/").status == 200
        assert entered.get(entered.path).status == 200  # the same browser may come again
        entered.cookie += "x"
        assert entered.get("/").status == 403


def test_the_cookie_is_strict_and_not_the_key():
    session, _ = new_session()
    with session, Served(session) as served:
        client = Client(served, enter=False)
        cookie = client.get(client.path).headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert client.path.removeprefix("/?token=") not in cookie


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.evil:80", ""]
)
def test_a_foreign_host_is_refused(entered, host):
    client, _, _ = entered
    assert client.get("/api/view", headers={"host": host}).status == 403
    assert client.get(client.path, headers={"host": host}).status == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1", ""]
)
def test_a_foreign_origin_is_refused(entered, origin):
    client, session, _ = entered
    before = session.state.n_events
    assert client.post("/api/undo", headers={"origin": origin}).status == 403
    assert client.get("/api/view", headers={"origin": origin}).status == 403
    assert session.state.n_events == before


def test_a_post_without_origin_or_from_another_port_is_refused(entered):
    client, _, _ = entered
    assert client.post("/api/skip", headers={"origin": None}).status == 403
    assert client.get("/api/view", headers={"sec-fetch-site": "same-site"}).status == 403
    assert client.get("/api/view", headers={"sec-fetch-site": "cross-site"}).status == 403
    assert client.get("/api/view", headers={"sec-fetch-site": "same-origin"}).status == 200


def test_a_tab_that_is_behind_is_told_and_not_taken(entered):
    client, session, _ = entered
    seen = client.get("/api/view").json()
    row = seen["proposal"]["row"]
    judged = {"row": row, "class": 0, "version": seen["version"]}
    assert client.post("/api/answer", judged).status == 200
    for action, body in [
        ("answer", {**judged, "class": 1}),
        ("skip", {}),
        ("undo", {}),
        ("mode", {"mode": "audit"}),
    ]:
        late = client.post(f"/api/{action}", {**body, "version": seen["version"]})
        assert (late.status, late.json()["error"][:27]) == (409, "Another tab has gone on: he")
    assert session.state.labels == {row: "yes"}
    assert (session.state.mode, len(session.state.decisions)) == ("find", 1)


def test_only_json_that_is_short(entered):
    client, _, _ = entered
    assert client.post("/api/skip", headers={"content-type": "text/plain"}).status == 415
    assert client.post("/api/skip", content=b"x" * 70_000).status == 413
    assert client.post("/api/skip", content=b"{").status == 400
    assert client.post("/api/skip", content=b"[]").status == 400


@pytest.mark.parametrize(
    "body",
    [{}, {"row": 0}, {"row": 0, "class": 9}, {"row": 0, "class": -1}, {"row": 99, "class": 0},
     {"row": True, "class": 0}, {"row": "0", "class": 0}, {"row": -1, "class": 0}],
)  # fmt: skip
def test_wrong_answers_are_refused_in_a_sentence(entered, body):
    client, session, _ = entered
    before = session.state.n_events
    done = client.post("/api/answer", body)
    assert done.status == 400
    assert done.json()["error"].endswith(".")
    assert session.state.n_events == before


@pytest.mark.parametrize("code", [-1, 2, True, "0", None])
def test_only_a_class_that_is_there_can_be_wanted(entered, code):
    client, session, _ = entered
    assert client.post("/api/want", {"class": code}).status == 400
    assert session.state.wanted == "yes"
    assert client.post("/api/want", {"class": 1}).status == 200


def test_numbers_too_large_for_a_computer_are_refused():
    session = Session(numbers(60)[0], "y", settings=SessionSettings(task="numbers", seed=0))
    with session, Served(session) as served:
        client = Client(served)
        for text in ("1e200", "9" * 400, "NaN", "Infinity", "true", "null", "[1]"):
            content = f'{{"row": 1, "label": {text}}}'.encode()
            assert client.post("/api/answer", content=content).status == 400
        assert session.state.labels == {}


def test_a_decision_that_cannot_be_saved_is_not_taken(entered, monkeypatch):
    client, session, truth = entered
    judge(client, truth, 2)

    def full(event):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(session._journal, "append", full)
    refused = client.post("/api/answer", {"row": session.propose().row, "class": 0})
    assert refused.status == 400
    assert "No space left" in refused.json()["error"]
    assert len(session.state.labels) == 2


@pytest.mark.parametrize(
    "path",
    [
        "/page/../session.py",
        "/page/..%2fsession.py",
        "/page/view.py",
        "/page/",
        "/api/nothing",
        "/etc/passwd",
    ],
)
def test_nothing_else_is_served(entered, path):
    client, _, _ = entered
    assert client.get(path).status in (404, 405)
    assert client.post(path).status in (404, 405)


def test_images_are_confined(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.png").write_bytes(b"\x89PNG\r\n")
    (tmp_path / "secret.png").write_bytes(b"\x89PNG\r\n")
    frame, _ = clusters()
    paths = ["a.png", "../secret.png", str(tmp_path / "secret.png"), *["none.png"] * 57]
    frame.assign(photo=pd.Series(paths)).to_csv(folder / "t.csv", index=False)
    session = Session(
        folder / "t.csv",
        "y",
        show=["title", "photo"],
        settings=SessionSettings(prepared=prepared()),
    )
    with session, Served(session) as served:
        client = Client(served)
        assert client.get("/image/0/1").headers["content-type"] == "image/png"
        assert [client.get(f"/image/{row}/1").status for row in (0, 1, 2, 3, 99)] == [
            200,
            403,
            403,
            403,
            403,
        ]
        assert client.get("/image/0/0").status == 403


class Markup(HTMLParser):
    """Collects what the page refers to and what could run in it."""

    def __init__(self):
        super().__init__()
        self.found, self.inline = [], []

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("src", "href"):
                self.found.append(value)
            if name.startswith("on") or name == "style":
                self.inline.append((tag, name))
        if tag in ("script", "style") and "src" not in dict(attributes):
            self.inline.append((tag, "inline"))


def test_the_page_needs_no_network_and_holds_no_script():
    markup = Markup()
    markup.feed((PAGE / "index.html").read_text(encoding="utf-8"))
    assert all(value.startswith(("/page/", "#")) for value in markup.found)
    assert markup.inline == []
    for file in PAGE.glob("*.*"):
        text = file.read_text(encoding="utf-8")
        outside = text.replace("http://www.w3.org/2000/svg", "")
        assert "://" not in outside, file.name
        if file.suffix == ".js":
            for word in (
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
            ):
                assert word not in text, f"{file.name}: {word}"


def test_it_listens_on_this_machine_only():
    with listen() as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
        with pytest.raises(OSError, match="is taken: choose another one"):
            listen(listening.getsockname()[1])
        other = socket.gethostbyname(socket.gethostname())
        if not other.startswith("127."):
            with pytest.raises(OSError, match=r".*"):
                socket.create_connection((other, listening.getsockname()[1]), timeout=1)


def test_ctrl_c_ends_cleanly(tmp_path):
    frame, _ = clusters()
    frame.assign(note="none").to_csv(tmp_path / "papers.csv", index=False)
    running = Running(serve_page, tmp_path / "papers.csv", 0, "again", errors=tmp_path / "errors")
    try:
        lines = [running.hear() for _ in range(4)]
        port = int(re.match(r"Open http://127.0.0.1:(\d+)/\?token=\S+$", lines[2])[1])
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/")
        assert connection.getresponse().status == 403  # it is up
        connection.close()
        running.interrupt()
        ended = running.hear_all()
    finally:
        running.kill()
    assert running.process.exitcode == 0
    # A slow machine tells of the comparison of its rows before.
    assert ended[-1].startswith("Ended. 0 labels are in ")
    assert (tmp_path / "errors").read_text() == ""


def test_command_refuses_what_it_cannot_serve(tmp_path, monkeypatch):
    from transduce.app.page import command

    with pytest.raises(ValueError, match="Name a table"):
        command.run_label(None, None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="pip install starlette uvicorn"):
        command.run_label("a.csv", "y")


def test_demo_table(tmp_path, monkeypatch):
    from transduce.app.page import command

    digits = load_digits()
    few = Bunch(images=digits.images[:50], data=digits.data[:50])  # all 1,797 take seconds
    monkeypatch.setattr("sklearn.datasets.load_digits", lambda: few)
    path, target, show, classes = command.demo_digits(tmp_path)
    assert (target, show, classes) == ("digit", ["image"], list(range(10)))
    images = pd.read_csv(path)["image"]
    assert (
        sorted(f"images/{file.name}" for file in (tmp_path / "images").iterdir()) == images.tolist()
    )
    assert len(images) == 50
    before = path.stat().st_mtime_ns
    assert command.demo_digits(tmp_path)[0].stat().st_mtime_ns == before


def test_the_demo_goes_on_with_another_digit(tmp_path, monkeypatch):
    """The digit that it searches for is proposed once, and not again after somebody chose another one."""
    from transduce.app.page import command

    pixels = np.random.default_rng(0).normal(size=(40, 3))
    pd.DataFrame(pixels, columns=list("abc")).to_csv(tmp_path / "digits.csv", index=False)
    monkeypatch.setattr(
        command, "demo_digits", lambda: (tmp_path / "digits.csv", "digit", ["a"], list(range(10)))
    )
    monkeypatch.setattr("uvicorn.Server.run", lambda self, sockets: None)
    command.run_label(None, None, demo=True, browser=False, say=str)
    with Session(tmp_path / "digits.csv", "digit") as session:
        assert (session.state.wanted, session.state.mode) == (command.WANTED, "find")
        session.want(3)
        session.propose("audit")
    command.run_label(None, None, demo=True, browser=False, say=str)
    with Session(tmp_path / "digits.csv", "digit") as session:
        assert (session.state.wanted, session.state.mode) == (3, "audit")


def test_the_terminal_says_how_far_the_comparison_is():
    """While all rows are compared in the background, a line every few seconds, and one at the end."""
    from transduce.app.page import command

    class Comparison:
        stages = iter(
            ["Comparing all rows: graph, 40 %.", "Comparing all rows: spectrum, 5 %.", ""]
        )
        words = property(lambda self: self.now)

        def join(self, seconds):
            self.now = next(self.stages)
            return not self.now

    lines = []
    command.follow(Bunch(model=None, preparation=Comparison()), lines.append)
    assert lines[:2] == ["Comparing all rows: graph, 40 %.", "Comparing all rows: spectrum, 5 %."]
    assert lines[2:] == ["All rows are compared: answers are there, and Find can be used."]
    command.follow(Bunch(model="there already"), lines.append)
    assert len(lines) == 3
