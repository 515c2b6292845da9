"""Renew the screenshots in docs/images: python docs/screenshots.py [report] [open] [label].

It needs Chromium with its driver, and the extras ``page``, ``excel`` and ``test``. Without names it
renews all; docs/images/fill.png is drawn by docs/demo_figure.py.
"""

from __future__ import annotations

import datetime
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from openpyxl import Workbook
from selenium import webdriver
from selenium.webdriver.common.by import By

from transduce import fill
from transduce.app.cli.demonstration import demo_table
from transduce.app.labelling import Session, SessionSettings
from transduce.app.page.command import demo_digits
from transduce.app.page.server import listen, make_server
from transduce.app.page.workspace import Workspace

IMAGES = Path(__file__).parent / "images"
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
PHONE = (390, 844)
PATIENTS = "patients.xlsx"
N_PATIENTS = 320
LIMIT = 120  # seconds to wait for what a page shows


class Camera:
    """A browser that takes pictures of pages."""

    def __init__(self) -> None:
        options = webdriver.ChromeOptions()
        for flag in FLAGS:
            options.add_argument(flag)
        self.driver = webdriver.Chrome(options=options)

    def open(self, address: str, width: int, height: int, look: str = "light") -> None:
        """Show an address in a window of a size, light or dark."""
        size = {
            "width": width,
            "height": height,
            "deviceScaleFactor": 1,
            "mobile": width < 600,
        }
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": look}]
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": features}
        )
        self.driver.get(address)

    def wait(self, selector: str, words: str = "") -> None:
        """Wait until an element is shown, with these words in it."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            found = self.driver.find_elements(By.CSS_SELECTOR, selector)
            if any(
                element.is_displayed() and words in element.text for element in found
            ):
                time.sleep(0.5)  # what moves comes to rest
                return
            time.sleep(0.1)
        raise SystemExit(f"The page does not show {selector} with {words!r}.")

    def take(self, name: str) -> None:
        """Write a picture of what is shown."""
        self.driver.get_screenshot_as_file(str(IMAGES / f"{name}.png"))
        print(IMAGES / f"{name}.png")


@contextmanager
def served(what: Session | Workspace) -> Iterator[str]:
    """Serve a page in a thread, and give its address."""
    listening = listen()
    server, address = make_server(what, listening)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield address
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def picture_report(camera: Camera) -> None:
    """Take the top of the demo's report."""
    table, target, _ = demo_table("diabetes")
    with tempfile.TemporaryDirectory() as folder:
        table.to_csv(Path(folder) / "diabetes.csv", index=False)
        page = Path(folder) / "report.html"
        fill(Path(folder) / "diabetes.csv", target, guarantee="column").report(page)
        camera.open(page.as_uri(), 1000, 860)
        camera.wait("h1", "progression")
        camera.take("report")


# ---- the page for the whole job


def write_patients(path: Path) -> None:
    """Write a workbook as laboratories keep them: a title, units, spellings, marks, a last row."""
    rng = np.random.default_rng(7)
    age = rng.integers(20, 85, N_PATIENTS)
    sex = rng.choice(
        ["M", "F", "male", "female"], N_PATIENTS, p=[0.4, 0.35, 0.13, 0.12]
    )
    bmi = np.round(rng.normal(26, 4, N_PATIENTS), 1)
    cholesterol = np.round(rng.normal(4.5, 0.55, N_PATIENTS), 2)
    ldl = (
        0.75 * (cholesterol - 4.5)
        + 0.02 * (bmi - 26)
        + rng.normal(2.6, 0.2, N_PATIENTS)
    )
    sugar = np.round(rng.normal(5.6, 0.5, N_PATIENTS) + 0.01 * (age - 50), 1)
    protein = np.round(rng.gamma(2.0, 0.8, N_PATIENTS) + 0.8, 1)
    measured = [rng.random(N_PATIENTS) < share for share in (0.57, 0.7, 0.68)]
    sheet = Workbook().active
    sheet.append(["Outpatient clinic, lipid study"])
    sheet.append(["Exported from the laboratory system"])
    sheet.append([])
    names = [
        "Patient",
        "Visit",
        "Age",
        "Sex",
        "BMI",
        "Cholesterol [mmol/l]",
        "LDL",
        "HbA1c (%)",
    ]
    sheet.append([*names, "CRP"])
    for i in range(N_PATIENTS):
        day = datetime.date(2023, 1, 2) + datetime.timedelta(days=int(i))
        visit: Any = day.strftime("%d.%m.%Y") if i % 40 == 0 else day
        total: Any = (
            f"{cholesterol[i]} mmol/l" if i % 60 == 0 else float(cholesterol[i])
        )
        values: list[Any] = [
            float(round(ldl[i], 2)),
            float(sugar[i]),
            float(protein[i]),
        ]
        if i % 55 == 3:
            values[2] = "<0.8"
        values = [
            value if known[i] else None
            for value, known in zip(values, measured, strict=True)
        ]
        row = [f"P{i + 1:04d}", visit, int(age[i]), str(sex[i]), float(bmi[i]), total]
        sheet.append([*row, *values])
    sheet.append([])
    sheet.append(["Mean", None, float(age.mean())])
    sheet.parent.save(path)


def picture_open(camera: Camera) -> None:
    """Take the three steps of the page, and its answers on a phone and in the dark."""
    with tempfile.TemporaryDirectory() as folder:
        write_patients(Path(folder) / PATIENTS)
        space = Workspace(folder, PATIENTS)

        def choose(**changes: Any) -> None:
            space.change(PATIENTS, space.saved.revision, changes)

        number = ["Cholesterol [mmol/l]"]
        choose(
            target="LDL",
            number=number,
            same=[["Sex", "M", "male"], ["Sex", "F", "female"]],
        )
        with served(space) as address:
            camera.open(address, 1200, 1000)
            camera.wait("#preview tbody tr")
            camera.take("open-table")
            press(camera, "#to-labels")
            camera.wait("#ways", "By chance")
            press_words(camera, "By chance")
            camera.wait("#outlook", "at least 90 %")
            camera.wait("#test", "look alike")
            camera.take("open-labels")
            press(camera, "#fill")
            camera.wait("#rows tbody tr")
            home = camera.driver.current_url
            camera.open(home, 1280, 1000)
            camera.wait("#rows tbody tr")
            camera.take("open-answers")
            for name, look in (("open-phone", "light"), ("open-dark", "dark")):
                camera.open(home, *PHONE, look)
                camera.wait("body", "Answers for")
                camera.take(name)


def press(camera: Camera, selector: str) -> None:
    """Click an element."""
    element = camera.driver.find_element(By.CSS_SELECTOR, selector)
    camera.driver.execute_script("arguments[0].click()", element)


def press_words(camera: Camera, words: str) -> None:
    """Click the button that begins with these words."""
    buttons = camera.driver.find_elements(By.CSS_SELECTOR, "button")
    button = next(button for button in buttons if button.text.startswith(words))
    camera.driver.execute_script("arguments[0].click()", button)


# ---- the page for labelling


def picture_label(camera: Camera) -> None:
    """Search for eights among images of digits, then draw rows at random."""
    with tempfile.TemporaryDirectory() as folder:
        path, target, show, classes = demo_digits(Path(folder))
        truth = digits_in_order()
        settings = SessionSettings(seed=0)
        with Session(
            path, target, show=show, classes=classes, wanted=8, settings=settings
        ) as session:
            judge(session, "learn", 20, truth)
            judge(session, "find", 180, truth)
            with served(session) as address:
                camera.open(address, 1280, 717)
                camera.wait("body[data-ready]")
                camera.wait("#why", "likely")
                close_notes(camera)
                camera.take("label")
                judge(session, "audit", 100, truth)
                camera.open(camera.driver.current_url, 1280, 717)
                camera.wait("body[data-ready]")
                press(camera, "#modes [data-mode=audit]")
                camera.wait("#why", "Random draw")
                close_notes(camera)
                camera.take("label-audit")
                camera.open(camera.driver.current_url, *PHONE)
                camera.wait("body[data-ready]")
                press(camera, "#modes [data-mode=audit]")
                camera.wait("#why", "Random draw")
                close_notes(camera)
                camera.take("label-phone")


def close_notes(camera: Camera) -> None:
    """Close the notes on how the table was read."""
    camera.driver.execute_script("document.querySelector('#notes button')?.click()")
    time.sleep(0.5)


def digits_in_order() -> pd.Series:
    """Return the digit of each row of the demo's table, which hides them."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.images))
    return pd.Series(digits.target[order])


def judge(session: Session, mode: str, count: int, truth: pd.Series) -> None:
    """Label some rows of a mode as they are."""
    for _ in range(count):
        proposal = session.propose(mode)
        session.answer(int(truth[proposal.row]))


PICTURES: dict[str, Callable[[Camera], None]] = {
    "report": picture_report,
    "open": picture_open,
    "label": picture_label,
}


def main() -> None:
    """Take the pictures that are named, or all."""
    camera = Camera()
    try:
        for name in sys.argv[1:] or PICTURES:
            PICTURES[name](camera)
    finally:
        camera.driver.quit()


if __name__ == "__main__":
    main()
