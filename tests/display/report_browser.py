"""What tests do with a report in a browser: look, click, set the slider."""

from __future__ import annotations

import json
import time

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


def network_requests(browser, page: str) -> list[str]:
    """What the tab asked the network for since it began to load `page`.

    Chromium's own pages, the new tab above all, load things in other tabs, and in this one before.
    """
    logged = [json.loads(entry["message"]) for entry in browser.get_log("performance")]
    sent = [
        entry["message"]["params"]["request"]["url"]
        for entry in logged
        if entry["message"]["method"] == "Network.requestWillBeSent"
        and entry["webview"] == browser.current_window_handle
    ]
    own = sent[sent.index(page) :]
    return [url for url in own if not url.startswith(("file:", "data:", "blob:"))]


def wait_until_ready(browser) -> None:
    """Until the numbers are unpacked and drawn; a page that cannot draw says why in its console."""
    deadline = time.monotonic() + 240
    while not browser.execute_script("return document.documentElement.dataset.ready"):
        assert time.monotonic() < deadline, browser.get_log("browser")
        time.sleep(0.02)


def text(browser, selector: str) -> str:
    return browser.find_element("css selector", selector).text


def texts(browser, selector: str) -> list[str]:
    return [element.text for element in browser.find_elements("css selector", selector)]


def click(browser, selector: str) -> None:
    """A click by the mouse, wherever the element is on the page."""
    element = browser.find_element("css selector", selector)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
    from selenium.webdriver import ActionChains

    ActionChains(browser).move_to_element(element).click().perform()


def set_threshold(browser, value: float) -> None:
    script = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))"
    browser.execute_script(script, browser.find_element("id", "threshold"), value)


def drawn_edges(browser) -> set[tuple[str, str]]:
    edges = browser.find_elements("css selector", "#drawing .edge")
    return {(edge.get_attribute("data-source"), edge.get_attribute("data-target")) for edge in edges}
