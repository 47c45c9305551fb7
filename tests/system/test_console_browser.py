"""The console in a real browser: what needs scripts, styles and the policy of its pages."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest
from consoles import CONFIGURATION
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

import cogwork
from cogwork.testing import container

from .served import started

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
WAIT_S = 30
WIDTHS = (1400, 800, 390)
PAGES = ("/", "/connections", "/queue?name=queue%2Fown.a")
"""Figures and charts; a wide list; attributes and forms."""

HOSTILE = "queue/own.<script>document.title='stolen'</script>"
OPTIONS = (
    *("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions"),
    *(
        "--no-sandbox",
        "--no-first-run",
        "--disable-component-update",
        "--disable-background-networking",
    ),
)

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="chromium and chromium-driver are not installed"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for each in OPTIONS:
        options.add_argument(each)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(DRIVER)
    with pytest.MonkeyPatch.context() as patch:
        # Else the driver's client asks a proxy for what is on this machine.
        patch.setenv("NO_PROXY", "127.0.0.1,localhost")
        found = webdriver.Chrome(options=options, service=service)
        try:
            yield found
        finally:
            found.quit()


@contextlib.contextmanager
def console(url: str) -> Iterator[str]:
    with started("console", url, "--listen", "127.0.0.1:0", "--json") as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"].rstrip("/")
        process.terminate()
        process.communicate()


def publish(url: str, *addresses: str) -> None:
    async def run() -> None:
        async with cogwork.connect(url, user="operator", password="secret") as client:
            for each in addresses:
                await client.publish(each, "x")

    asyncio.run(run())


def log_in(browser: webdriver.Chrome, home: str) -> None:
    browser.get(f"{home}/login")
    browser.find_element(By.NAME, "user").send_keys("operator", Keys.TAB, "secret", Keys.ENTER)
    until(browser, "h1", "Overview")


def until(browser: webdriver.Chrome, selector: str, text: str) -> None:
    """Wait until something on the page has a text."""

    def has_it(found: webdriver.Chrome) -> bool:
        script = "return Array.from(document.querySelectorAll(arguments[0]), e => e.innerText)"
        return any(text in each for each in found.execute_script(script, selector))

    WebDriverWait(browser, WAIT_S, poll_frequency=0.2).until(has_it, f"{text!r} in {selector}")


def width(browser: webdriver.Chrome, pixels: int) -> None:
    metrics = {"width": pixels, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def test_pages_live_and_fit_and_run_no_foreign_script(browser: webdriver.Chrome) -> None:
    with container(CONFIGURATION, id="box") as url, console(url) as home:
        publish(url, "queue/own.a", HOSTILE)
        log_in(browser, home)
        browser.execute_script("window.isThisPage = true")
        publish(url, "queue/own.b")
        until(browser, "td", "queue/own.b")
        assert browser.execute_script("return window.isThisPage"), "nothing was loaded anew"

        for pixels in WIDTHS:
            width(browser, pixels)
            for path in PAGES:
                browser.get(home + path)
                wide = browser.execute_script("return document.documentElement.scrollWidth")
                assert wide <= pixels, (path, pixels)

        browser.get(f"{home}/queues")
        assert "stolen" not in browser.title
        assert HOSTILE in browser.find_element(By.TAG_NAME, "table").text
        browser.find_element(By.TAG_NAME, "body").send_keys("/")
        browser.switch_to.active_element.send_keys("own.a")
        until(browser, ".told", "1 of 3")
        assert browser.current_url.endswith("/queues?search=own.a")

        browser.find_element(By.LINK_TEXT, "queue/own.a").click()
        until(browser, "h1", "queue/own.a")
        browser.find_element(By.XPATH, "//summary[text()='Publish a message']").click()
        browser.find_element(By.NAME, "body").send_keys("by hand")
        browser.find_element(By.XPATH, "//button[text()='Publish']").click()
        until(browser, ".flash.done", "it was accepted")
        browser.find_element(By.LINK_TEXT, "Peek").click()
        until(browser, ".body", "by hand")

        assert [each["message"] for each in browser.get_log("browser")] == []
        browser.execute_script(
            "const s = document.createElement('script');"
            "s.text = 'document.title = \"stolen\"'; document.body.append(s)"
        )
        assert "stolen" not in browser.title
        (refused,) = browser.get_log("browser")
        assert "Content Security Policy" in refused["message"]


def findings(browser: webdriver.Chrome, rules: Sequence[str] = ()) -> list[str]:
    """List what axe-core finds on a page that is serious for people who use it otherwise.

    Args:
        browser: Shows the page.
        rules: Which rules to go by; all without.
    """
    browser.execute_script((files("axe_core_python") / "axe.min.js").read_text())
    found = browser.execute_async_script(
        "axe.run(arguments[0]).then(arguments[1])", {"runOnly": rules} if rules else {}
    )
    return [
        f"{each['id']}: {node['html']}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def test_pages_can_be_used_by_all_in_both_schemes_of_colours(browser: webdriver.Chrome) -> None:
    with container(CONFIGURATION) as url, console(url) as home:
        publish(url, "queue/own.a", HOSTILE)
        log_in(browser, home)
        grounds = set()
        for scheme, rules in (("light", ()), ("dark", ("color-contrast",))):
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            for path in PAGES:
                browser.get(home + path)
                browser.execute_script(
                    "document.querySelectorAll('main details').forEach(each => each.open = true)"
                )
                assert findings(browser, rules) == [], (scheme, path)
            script = "return getComputedStyle(document.body).backgroundColor"
            grounds.add(browser.execute_script(script))
        assert len(grounds) == 2


def test_a_banner_tells_of_a_container_that_is_away_and_goes_when_it_is_back(
    browser: webdriver.Chrome,
) -> None:
    running = container(CONFIGURATION, id="box")
    with running as url, console(url) as home:
        port = int(url.rpartition(":")[2])
        log_in(browser, home)
        until(browser, "dd", "box")
        running.stop()
        until(browser, "#banner", "The container does not answer")
        with container(CONFIGURATION, port=port, id="again"):
            until(browser, "dd", "again")
            assert not browser.find_element(By.ID, "banner").is_displayed()
