"""One browser for all tests of the page, and fills that begin at once: both take seconds to start."""

import pytest

from tests.app.labelling.processes import FORKS, FillProcess

FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--hide-scrollbars",
]  # fmt: skip


@pytest.fixture(scope="session", autouse=True)
def _fills_begin_at_once():
    """Fork the processes of fills; tests/app/labelling/test_privacy.py starts one as the program does."""
    with pytest.MonkeyPatch.context() as patch:
        if FORKS:
            patch.setattr("transduce.app.page.run.start_process", FillProcess)
        yield


@pytest.fixture
def browser(driver):
    """The browser; it leaves the page after each test, so that none asks a server that has ended."""
    yield driver
    driver.get("about:blank")
    driver.get_log("browser")


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.service import Service

    from tests.app.page.test_browser import BROWSER, DRIVER

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    try:
        driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    except WebDriverException as error:
        pytest.skip(f"NOT TESTED: Chromium does not start here ({error.msg[:200]}).")
    driver.set_page_load_timeout(30)
    driver.set_script_timeout(30)
    yield driver
    driver.quit()
