"""The report's graph and heat map at the size of real problems: fitted, zoomed, searched, no overlaps."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from report_browser import click, drawn_edges, set_threshold, text
from report_posteriors import noisy_posterior

from gflowdag.posterior.posterior import Posterior

MANY = 60  # variables: drawn in blocks
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
RIGHT = np.array([1, 0, 1, 0])  # of a box
KEY = "arguments[0].dispatchEvent(new KeyboardEvent('keydown', {key: arguments[1], bubbles: true}))"
CHOOSE = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))"
BOXES = """
    const isShown = ({ visibility, display }) => visibility !== "hidden" && display !== "none";
    return [...document.querySelectorAll(arguments[0])]
        .filter((element) => isShown(getComputedStyle(element)))
        .map((element) => element.getBoundingClientRect())
        .filter(({ width, height }) => width > 0 && height > 0)
        .map(({ left, top, right, bottom }) => [left, top, right, bottom])"""


@pytest.fixture(scope="module")
def many() -> Posterior:
    names = [f"variable {k:03d} of the table" for k in range(MANY)]
    return noisy_posterior(MANY, 40, names=names, seed=1)


def boxes(browser, selector: str) -> np.ndarray:
    """Left, top, right and bottom of the visible elements, [n, 4], in pixels of the window."""
    return np.array(browser.execute_script(BOXES, selector)).reshape(-1, 4)


def outside(browser) -> int:
    """How many variables are not wholly in the box of the drawing."""
    (left, top, right, bottom), nodes = boxes(browser, "#graph-picture")[0], boxes(browser, "#drawing .node")
    low, high = nodes[:, :2] >= [left - 1, top - 1], nodes[:, 2:] <= [right + 1, bottom + 1]
    return int((~(low & high).all(axis=1)).sum())


def overlaps(found: np.ndarray) -> int:
    """How many pairs of boxes [n, 4] share more than a pixel in both directions."""
    low, high = np.maximum(found[:, None, :2], found[:, :2]), np.minimum(found[:, None, 2:], found[:, 2:])
    return int(np.triu((high - low > 1).all(axis=2), 1).sum())


def view(browser) -> tuple[float, float, float]:
    """Where the origin of the drawing is in its box, and its scale."""
    transform = browser.find_element("css selector", "#drawing .world").get_attribute("transform")
    x, y, scale = map(float, re.findall(r"[-\d.]+", transform))
    return x, y, scale


def point(browser, x: float, y: float) -> tuple[float, float]:
    """The point of the drawing that is shown at a place of the window."""
    left, top = boxes(browser, "#graph-picture")[0][:2]
    origin_x, origin_y, scale = view(browser)
    return (x - left - origin_x) / scale, (y - top - origin_y) / scale


def next_frame(browser) -> None:
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")


def act(browser, script: str, *arguments: Any) -> None:
    browser.execute_script(script, *arguments)
    next_frame(browser)


def send(browser, kind: str, event: str, **values: Any) -> None:
    """An event as Chromium makes it of a real mouse or finger."""
    browser.execute_cdp_cmd(f"Input.dispatch{kind}Event", {"type": event, **values})


def test_the_graph_opens_fitted_and_keys_zoom_move_and_fit_it(open_report, many) -> None:
    browser = open_report(many)
    assert len(boxes(browser, "#drawing .node")) == MANY
    assert outside(browser) == 0
    fitted = view(browser)
    picture = browser.find_element("id", "graph-picture")
    for _ in range(5):
        act(browser, KEY, picture, "+")
    assert view(browser)[2] == pytest.approx(fitted[2] * 1.3**5, rel=1e-3)  # it is written with four digits
    assert outside(browser) > 0
    before = boxes(browser, "#drawing .node")[0]
    act(browser, KEY, picture, "ArrowLeft")
    assert boxes(browser, "#drawing .node")[0] == pytest.approx(before + 60 * RIGHT, abs=1)
    act(browser, KEY, picture, "0")
    assert view(browser) == fitted
    assert outside(browser) == 0


def test_wheel_drag_and_pinch_move_what_is_under_them(open_report, many) -> None:
    browser = open_report(many)
    scroll = "document.getElementById('graph-picture').scrollIntoView({block: 'center', behavior: 'instant'})"
    browser.execute_script(scroll)
    browser.execute_async_script("setTimeout(arguments[0], 400)")  # a wheel that scrolls goes on scrolling
    left, top, right, bottom = boxes(browser, "#graph-picture")[0]
    x, y = (left + right) / 2, (top + bottom) / 2
    fitted, under = view(browser)[2], point(browser, x, y)
    send(browser, "Mouse", "mouseWheel", x=x, y=y, deltaX=0, deltaY=-600)
    next_frame(browser)
    assert view(browser)[2] > 1.5 * fitted
    assert point(browser, x, y) == pytest.approx(under, abs=1)
    before = boxes(browser, "#drawing .node")[0]
    send(browser, "Mouse", "mousePressed", x=x, y=y, button="left", buttons=1, clickCount=1)
    for step in (10, 25, 40):
        send(browser, "Mouse", "mouseMoved", x=x + step, y=y, button="left", buttons=1)
    send(browser, "Mouse", "mouseReleased", x=x + 40, y=y, button="left", clickCount=1)
    next_frame(browser)
    assert boxes(browser, "#drawing .node")[0] == pytest.approx(before + 40 * RIGHT, abs=1)
    assert "Choose a variable" in text(browser, "#detail")  # a drag is no click
    zoomed = view(browser)[2]
    for event, apart in (("touchStart", 40), ("touchMove", 60), ("touchMove", 80)):
        fingers = [{"x": x + side * apart, "y": y, "id": place} for place, side in enumerate((-1, 1))]
        send(browser, "Touch", event, touchPoints=fingers)
    send(browser, "Touch", "touchEnd", touchPoints=[])
    next_frame(browser)
    assert view(browser)[2] > 1.3 * zoomed


def test_a_variable_is_found_and_its_neighbourhood_shown(open_report, many) -> None:
    browser = open_report(many)
    find = browser.find_element("id", "find")
    find.send_keys("nothing like it")
    assert "No variable’s name contains" in text(browser, "#find-result")
    find.clear()
    p = many.edge_probabilities().to_numpy()
    adjacent = (p > 0.5) | (p.T > 0.5)
    wanted = int(adjacent.sum(axis=0).argmax())
    find.send_keys(f"{wanted:03d}\ue007")  # Enter
    next_frame(browser)
    assert text(browser, "#detail").startswith(many.names[wanted])
    assert outside(browser) > 0  # large enough to be read
    near = {wanted}
    for steps in ("1", "2"):
        act(browser, CHOOSE, browser.find_element("id", "steps"), steps)
        near |= {j for i in near for j in np.flatnonzero(adjacent[i]).tolist()}
        nodes = browser.find_elements("css selector", "#drawing .node")
        assert {int(node.get_attribute("data-node")) for node in nodes} == near
        assert outside(browser) == 0


def test_variables_without_an_edge_hide_and_blocks_stand_for_their_variables(open_report, many) -> None:
    browser = open_report(many)
    set_threshold(browser, 0.7)
    click(browser, "#hide-alone")
    ends = {int(end) for edge in drawn_edges(browser) for end in edge}
    nodes = browser.find_elements("css selector", "#drawing .node")
    assert {int(node.get_attribute("data-node")) for node in nodes} == ends
    assert 0 < len(ends) < MANY
    click(browser, "#hide-alone")
    set_threshold(browser, 0.5)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    next_frame(browser)
    click(browser, "#as-blocks")
    next_frame(browser)
    assert "as-blocks" in browser.find_element("id", "graph-picture").get_attribute("class")
    names = boxes(browser, "#drawing .block-names > text")
    assert len(names) > 3
    assert overlaps(names) == 0


@pytest.mark.parametrize("phone", [False, True])
@pytest.mark.parametrize("number", [30, *(pytest.param(d, marks=pytest.mark.long) for d in (107, 223))])
def test_names_of_heat_map_and_graph_never_overlap(open_report, browser, number, phone) -> None:
    if phone:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    names = [f"variable {k:03d} of the table" for k in range(number)]
    open_report(noisy_posterior(number, 20, names=names, seed=2))
    for zooms in (0, 1, 3):
        for _ in range(zooms):
            click(browser, "#heat .zoom button")
            click(browser, "#drawing .zoom button")
        next_frame(browser)
        assert len(boxes(browser, ".heat-names > text")) > 4
        assert overlaps(boxes(browser, ".heat-names > text")) == 0
        assert overlaps(boxes(browser, "#drawing .names > text:not(.unnamed)")) == 0
        assert overlaps(boxes(browser, "#drawing .block-names > text")) == 0


@pytest.mark.long
def test_a_report_of_five_hundred_variables_is_small_and_can_be_used(open_report, tmp_path) -> None:
    browser = open_report(noisy_posterior(500, 20, seed=3))
    assert (tmp_path / "report.html").stat().st_size < 5e6
    assert outside(browser) == 0
    browser.find_element("id", "find").send_keys("X499\ue007")
    next_frame(browser)
    assert text(browser, "#detail").startswith("X499")
