"""One browser for all tests of the page: it takes seconds to start."""

import pytest

FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--hide-scrollbars",
]  # fmt: skip


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
