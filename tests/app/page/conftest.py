"""One browser for all tests of the page, and fills that begin at once: both take seconds to start."""

import os
import signal

import pytest

from tests.app.labelling.processes import FORKS, FillProcess

FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--hide-scrollbars",
    "--disable-dev-shm-usage",
    # One process for the pages of all tests: to start one for each server takes a tenth of the time.
    "--process-per-site", "--renderer-process-limit=1", "--disable-site-isolation-trials",
]  # fmt: skip
# A small window stays small, and a scrolled phone scrolled, until the browser is told otherwise.
AS_NEW = (
    ("Emulation.clearDeviceMetricsOverride", {}),
    ("Emulation.setEmulatedMedia", {"features": []}),
)


@pytest.fixture(scope="session", autouse=True)
def _fills_begin_at_once():
    """Fork the processes of fills; tests/app/labelling/test_privacy.py starts one as the program does."""
    with pytest.MonkeyPatch.context() as patch:
        if FORKS:
            patch.setattr("transduce.app.page.run.start_process", FillProcess)
        yield


@pytest.fixture
def browser(browsers):
    """The browser of this process; no test finds a page, a log or a phone's window of the one before it."""
    driver = browsers.ready()
    yield driver
    browsers.leave()


@pytest.fixture(scope="session")
def browsers(tmp_path_factory):
    browsers = Browsers(tmp_path_factory)
    yield browsers
    browsers.end()


class Browsers:
    """One browser after another, each used until it does not answer."""

    def __init__(self, folders):
        self._folders, self._driver = folders, None

    def ready(self):
        """The browser that runs, or a new one."""
        if self._driver is None:
            self._driver = start(self._folders.mktemp("profile"))
        return self._driver

    def leave(self):
        """Leave the page, so that none asks a server that has ended; end a browser that cannot."""
        try:
            self._driver.get("about:blank")
            for command in AS_NEW:
                self._driver.execute_cdp_cmd(*command)
            self._driver.get_log("browser")
        except Exception:
            self._kill()

    def _kill(self):
        driver, self._driver = self._driver, None
        os.killpg(driver.service.process.pid, signal.SIGKILL)
        driver.service.process.wait()

    def end(self):
        if self._driver is not None:
            self._driver.quit()


def start(profile):
    """A browser with its driver."""
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.service import Service

    from tests.app.page.test_browser import ANSWERS, BROWSER, DRIVER

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    together = {"start_new_session": True}  # the driver and its browser can be killed at once
    service = Service(DRIVER, popen_kw=together)
    try:
        driver = webdriver.Chrome(options=options, service=service)
    except WebDriverException as error:
        pytest.skip(f"NOT TESTED: Chromium does not start here ({error.msg[:200]}).")
    driver.set_page_load_timeout(ANSWERS)
    driver.set_script_timeout(ANSWERS)
    executor = driver.command_executor
    if hasattr(executor, "client_config"):
        executor.client_config.timeout = ANSWERS + 10
    else:  # Selenium before 4.26
        executor.set_timeout(ANSWERS + 10)
    return driver
