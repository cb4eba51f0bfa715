"""The report in a real browser: what it shows, what it does when used, and that it stays offline."""

from __future__ import annotations

import csv
import re
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fork_server import LONGEST
from report_browser import click, drawn_edges, network_requests, set_threshold, text, texts
from report_posteriors import HOSTILE_NAMES, hostile_posterior, noisy_posterior

import gflowdag as gd
from gflowdag.graph import all_dags
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.csv_cells import unescaped


def test_what_a_page_asks_the_network_for_is_seen_and_what_the_browser_asks_for_is_not(browser, tmp_path):
    picture = "http://localhost:9/picture.png"  # nobody listens on the port of discarded bytes
    page = tmp_path / "page.html"
    page.write_text(f"<img src={picture}>")
    report_tab = browser.current_window_handle
    browser.get_log("performance")
    browser.get("chrome://newtab")
    browser.get(page.as_uri())
    browser.switch_to.new_window("tab")
    browser.get("chrome://newtab")
    browser.close()
    browser.switch_to.window(report_tab)
    assert network_requests(browser, page.as_uri()) == [picture]
    browser.get_log("browser")  # the picture could not be fetched


@pytest.fixture
def chain() -> Posterior:
    """a → b in all of four graphs; b → c in two and c → b in one of them."""
    graphs = np.zeros((4, 3, 3), dtype=bool)
    graphs[:, 0, 1] = graphs[:2, 1, 2] = graphs[2, 2, 1] = True
    return Posterior(graphs, "abc", log_scores=np.arange(4.0))


def downloaded(browser, kind: str, name: str) -> Path:
    path = browser.downloads / name
    path.unlink(missing_ok=True)
    click(browser, f"[data-download={kind}]")
    deadline = time.monotonic() + LONGEST
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return path


def test_an_exact_answer_has_no_column_of_errors(open_report, chain):
    headers = open_report(replace(chain, diagnosis=EXACT)).find_elements(
        "css selector", "#pair-table th button"
    )
    assert "± error" not in [header.text for header in headers]


EXACT = Diagnostics("exact", "All were summed.")


@pytest.mark.parametrize("verdict", ["not converged", "unverified"])
def test_the_slider_expects_nothing_of_what_nothing_vouches_for(open_report, chain, verdict):
    browser = open_report(replace(chain, diagnosis=Diagnostics(verdict=verdict, explanation="")))
    assert text(browser, "#threshold-meaning") == "1 edge shown."
    set_threshold(browser, 0.2)
    assert text(browser, "#threshold-meaning") == "3 edges shown."
    assert "b → c → b" in text(browser, "#cycle-warning")


def test_the_slider_shows_edges_their_expected_errors_and_cycles(open_report, chain):
    browser = open_report(replace(chain, diagnosis=EXACT))
    assert drawn_edges(browser) == {("0", "1")}
    assert "1 edge shown. 0.0 of them" in text(browser, "#threshold-meaning")
    assert not browser.find_element("id", "cycle-warning").is_displayed()
    set_threshold(browser, 0.2)
    assert drawn_edges(browser) == {("0", "1"), ("1", "2"), ("2", "1")}
    # b → c has probability 0.5, c → b 0.25: 0.5 + 0.75 false edges.
    assert "3 edges shown. 1.3 of them" in text(browser, "#threshold-meaning")
    assert "b → c → b" in text(browser, "#cycle-warning")


def test_a_node_can_be_chosen_by_mouse_and_by_keyboard(open_report, chain):
    browser = open_report(chain)
    click(browser, "#drawing [data-node='1']")
    detail = text(browser, "#detail")
    assert detail.startswith("b\nParents\na\n1.000")
    assert "Markov blanket" in detail
    assert "c\n0.500 ± 0.250" in detail  # sqrt(0.5 · 0.5 / 4)
    click(browser, "#drawing [data-node='1']")
    assert "Choose a variable" in text(browser, "#detail")
    browser.find_element("css selector", "#drawing [data-node='0']").send_keys("\ue007")  # Enter
    assert text(browser, "#detail").startswith("a\nParents\nnone above 0.05")
    assert browser.switch_to.active_element.get_attribute("data-node") == "0"


def test_table_and_graph_are_linked(open_report, chain):
    browser = open_report(chain)
    click(browser, "#pair-table tbody tr[data-pair='1,2']")
    assert ("1", "2") in drawn_edges(browser)  # below the threshold, drawn because it was chosen
    assert "no edge between them\n0.250" in text(browser, "#detail")
    click(browser, "#drawing [data-node='0']")
    chosen = browser.find_elements("css selector", "#pair-table tr.chosen")
    assert {row.get_attribute("data-pair") for row in chosen} == {"0,1", "0,2"}


def test_the_table_sorts_by_every_column_and_filters_by_name(open_report):
    browser = open_report(noisy_posterior(8, 60, log_weights=np.arange(60) / 60))
    click(browser, "#more-pairs")
    headers = browser.find_elements("css selector", "#pair-table thead button")
    assert len(headers) == 6  # pair, →, ←, none, error, and → without weights
    for index in range(1, 6):
        for expected in ("descending", "ascending"):
            button = f"#pair-table thead th:nth-child({index + 1}) button"
            if (index, expected) != (1, "descending"):  # sorted like this from the start
                click(browser, button)
            header = browser.find_element("css selector", f"#pair-table thead th:nth-child({index + 1})")
            assert header.get_attribute("aria-sort") == expected
            cells = texts(browser, f"#pair-table tbody td:nth-child({index + 1})")
            values = [float(cell.strip("<>")) for cell in cells]
            assert values == sorted(values, reverse=expected == "descending")
            assert len(values) == 28
    browser.find_element("id", "filter").send_keys("x3")
    assert len(texts(browser, "#pair-table tbody tr")) == 7


def test_a_filter_without_a_match_says_so(open_report, chain):
    browser = open_report(chain)
    assert text(browser, "#no-pairs") == ""
    browser.find_element("id", "filter").send_keys("<i>B")
    assert texts(browser, "#pair-table tbody tr") == []
    assert text(browser, "#no-pairs") == "No pair has a variable whose name contains “<i>B”."
    browser.find_element("id", "filter").send_keys("\ue003" * 4 + "b")  # Backspace
    assert len(texts(browser, "#pair-table tbody tr")) == 2
    assert text(browser, "#no-pairs") == ""


def test_shares_of_the_classes_are_not_rounded_to_nothing_or_to_all(open_report):
    browser = open_report(noisy_posterior(30, 1000))  # every graph its own class, and three of them drawn
    assert "below hold 0.3 % of the probability" in text(browser, "#class-summary")
    graphs = all_dags(4)
    peaked = np.where(
        np.arange(len(graphs)) == 0, 14.0, 0.0
    )  # the other 542 have exp(-14) of its weight each
    assert "below hold >99.9 %" in text(
        open_report(Posterior(graphs, "abcd", log_weights=peaked)), "#class-summary"
    )


def test_files_are_made_in_the_browser(open_report, chain):
    browser = open_report(chain)
    set_threshold(browser, 0.3)
    rows = list(csv.DictReader(downloaded(browser, "csv", "edges.csv").open(encoding="utf-8")))
    assert len(rows) == 6
    assert rows[0] == {"source": "a", "target": "b", "probability": "1", "error": "0.15"}  # (½ of 5, 4½ of 5)
    import networkx as nx

    graph = nx.read_graphml(downloaded(browser, "graphml", "graph.graphml"))
    names = nx.get_node_attributes(graph, "name")
    assert {(names[a], names[b], p) for a, b, p in graph.edges(data="probability")} == {
        ("a", "b", 1.0),
        ("b", "c", 0.5),
    }
    assert '"b" -> "c" [label="0.500"' in downloaded(browser, "dot", "graph.dot").read_text()
    picture = ElementTree.parse(downloaded(browser, "svg", "graph.svg")).getroot()
    assert [node.text for node in picture.iter("{http://www.w3.org/2000/svg}text")] == ["a", "b", "c"]
    assert downloaded(browser, "png", "graph.png").read_bytes().startswith(b"\x89PNG")


def outside_the_frame(browser, graph: str) -> list[str]:
    """The lines of drawings that leave what is shown, by half of their width at least."""
    script = """return [...document.querySelectorAll(arguments[0])].flatMap((picture) => {
      const { left, top, right, bottom } = picture.getBoundingClientRect();
      return [...picture.querySelectorAll("path.line, path.head")].filter((path) => {
        const box = path.getBoundingClientRect();
        return box.left < left || box.top < top || box.right > right || box.bottom > bottom;
      }).map((path) => path.getAttribute("d"));
    })"""
    return browser.execute_script(script, graph)


@pytest.mark.parametrize("threshold", [0.5, 0.01])  # edges of the layout, and more that pass beside nodes
def test_no_edge_leaves_the_drawing(open_report, threshold):
    every = np.triu(np.ones((9, 9), dtype=bool), 1)  # long edges bend beside a single column of nodes
    browser = open_report(Posterior(np.stack([*[every] * 9, every.T]), [f"X{i}" for i in range(9)]))
    set_threshold(browser, threshold)
    assert len(drawn_edges(browser)) == (36 if threshold == 0.5 else 72)
    assert outside_the_frame(browser, "#graph-picture") == []
    assert outside_the_frame(browser, "#class-cards svg") == []
    names = ElementTree.parse(downloaded(browser, "svg", "graph.svg")).getroot()
    left, top, width, height = (float(value) for value in names.attrib["viewBox"].split())
    for path in names.iter("{http://www.w3.org/2000/svg}path"):
        points = np.array(re.findall(r"-?[\d.]+", path.attrib["d"]), dtype=float).reshape(-1, 2)
        assert (points >= [left, top]).all()
        assert (points <= [left + width, top + height]).all()


def test_a_single_variable_has_whole_numbers_of_edges_and_none_with_a_direction(open_report):
    browser = open_report(Posterior(np.zeros((5, 1, 1), dtype=bool), ["only"]))
    across = texts(browser, "#distribution-charts svg text[text-anchor=middle]")
    assert across == ["0", "edges in a graph"]
    assert text(browser, "#class-cards .card > p:last-child") == "No edges."


def test_a_class_that_interventions_oriented_says_what_was_sampled(open_report):
    chain, fork = np.zeros((2, 3, 3), dtype=bool)
    chain[0, 1] = chain[1, 2] = fork[1, 0] = fork[1, 2] = True
    expected = {
        (1, 0): "Every edge has one direction in the only draw. That may be chance.",
        (5, 0): "Every edge has one direction in all 5 draws. That may be chance.",
        (20, 0): "Every edge has one direction in all 20 draws.",
        (2, 1): "Sampled in both directions: a – b. Only 3 draws: the other directions may be chance.",
        (20, 5): "Sampled in both directions: a – b.",
    }
    for (chains, forks), sentence in expected.items():
        graphs = np.stack([chain] * chains + [fork] * forks)
        browser = open_report(Posterior(graphs, "abc", diagnosis=Diagnostics(interventional=True)))
        assert text(browser, "#class-cards .card > p:last-child") == sentence


def test_a_class_that_knowledge_oriented_says_what_it_allows(open_report):
    chain = np.zeros((1, 3, 3), dtype=bool)
    chain[0, 0, 1] = chain[0, 1, 2] = True
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), columns=list("abc"))
    for forbidden, allowed, sentence in (
        [[("c", "b")], 2, "Open direction: a – b."],
        [[("b", "a")], 1, "Every edge has one direction."],
    ):
        data = gd.Dataset.from_frame(frame, knowledge=gd.Knowledge(forbidden=forbidden))
        browser = open_report(Posterior(chain, "abc"), data=data)
        assert text(browser, "#class-cards .card > p:last-child") == sentence
        header = text(browser, "#class-cards .card .muted")
        assert header == f"3 graphs, {allowed} of them allowed, 1 sampled; 2 edges"
        assert "the graphs of one class that it allows" in text(browser, "#classes")


def test_one_hit_is_not_spoken_of_in_the_plural(open_report, chain):
    browser = open_report(chain, truth=[("a", "b")])
    assert "1 hit, 0 reversed, 0 missed of 1 true edge; 0 edges that" in text(browser, "#truth-counts")


def luminance(colour: str) -> float:
    """Relative luminance of `rgb(r, g, b)` (WCAG 2)."""
    parts = np.array([float(part) for part in colour.strip("rgb()").split(",")]) / 255
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_the_line_of_chance_can_be_seen(open_report, chain):
    browser = open_report(chain, truth=[("a", "b")], others={"other": chain})
    look = "const of = (selector) => getComputedStyle(document.querySelector(selector));"
    surface = luminance(browser.execute_script(f"{look} return of('section').backgroundColor"))
    for selector in ("#truth-charts path:last-of-type", "#method-charts path:last-of-type"):
        line = luminance(browser.execute_script(f"{look} return of('{selector}').stroke"))
        assert (surface + 0.05) / (line + 0.05) >= 3  # WCAG 2.1, 1.4.11
    dashed = f"{look} return [of('#truth-charts path:last-of-type').strokeDasharray, of('.key.dashed')]"
    dashes, swatch = browser.execute_script(f"{dashed}.map((of) => of.backgroundImage ?? of)")
    assert dashes == "4px, 3px"
    assert "repeating-linear-gradient" in swatch
    assert "0px" in swatch
    assert "4px" in swatch


def test_print_keeps_bars_and_keys_and_leaves_no_heading_at_the_end_of_a_page(open_report, chain):
    browser = open_report(chain, truth=[("a", "b")])
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    style = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
    for selector in (".stack i", ".key", ".stack"):
        assert browser.execute_script(style, selector, "print-color-adjust") == "exact"
    for selector in ("h2", "h3", "h2 + p", "h2 + .controls", "#class-summary", "figcaption"):
        assert browser.execute_script(style, selector, "break-after") == "avoid"
    for selector in ("h2 + p", ".controls"):
        assert browser.execute_script(style, selector, "break-inside") == "avoid"
    assert browser.execute_script(style, "th button", "display") == "contents"


def test_hostile_names_are_shown_as_text(open_report):
    browser = open_report(hostile_posterior())
    click(browser, "#more-pairs")
    assert browser.execute_script("return window.hacked") is None
    shown = {
        element.get_attribute("textContent") for element in browser.find_elements("css selector", "td .name")
    }
    assert shown == set(HOSTILE_NAMES)
    for node, name in enumerate(HOSTILE_NAMES):
        click(browser, f"#drawing [data-node='{node}'] rect")
        assert browser.find_element("css selector", "#detail .title").get_attribute("textContent") == name
    rows = csv.DictReader(downloaded(browser, "csv", "edges.csv").open(encoding="utf-8", newline=""))
    cells = {row["source"] for row in rows}
    assert not any(cell.startswith("=") for cell in cells)  # a spreadsheet would compute it
    assert set(map(unescaped, cells)) == set(HOSTILE_NAMES)
    ElementTree.parse(downloaded(browser, "graphml", "graph.graphml"))
    ElementTree.parse(downloaded(browser, "svg", "graph.svg"))


PHONE = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}


def test_a_long_name_in_the_notes_fits_a_phone(open_report, browser, chain):
    names = ["a_column_" + "that_someone_exported_from_a_database_" * 3, "b", "c"]
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), columns=names)
    data = gd.Dataset.from_frame(frame, knowledge=gd.Knowledge(required=[(names[0], "b")]))
    assert names[0] in " ".join(data.notes)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    open_report(replace(chain, names=names), data=data, failures={"mc3": names[0]})
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390


def test_no_number_of_a_pair_is_cut_on_a_phone(open_report, browser):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    open_report(noisy_posterior(30, 60, names=[f"blood pressure {i}" for i in range(30)]))
    box = "document.querySelector('#pair-table').parentElement"
    assert "± error" in text(browser, "#pair-table thead")
    assert browser.execute_script(f"return {box}.scrollWidth - {box}.clientWidth") <= 0


def test_a_full_report_fits_a_phone_and_both_colour_schemes(open_report, browser):
    drawn = gd.simulate.linear_gaussian(num_variables=6, num_rows=50, random_state=0)
    posterior = noisy_posterior(6, 60, names=list(drawn.frame))
    history = [{"step": step, "loss": 1 / step} for step in range(1, 30)]
    others = {"other": noisy_posterior(6, 60, names=list(drawn.frame), seed=1)}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    backgrounds = set()
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        data = gd.Dataset.from_frame(drawn.frame)
        open_report(posterior, data=data, truth=drawn.truth, history=history, others=others)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        backgrounds.add(
            browser.execute_script("return getComputedStyle(document.body.parentElement).backgroundColor")
        )
    assert len(backgrounds) == 2
    click(browser, "#show-truth")
    assert "1 hit" in text(browser, "#truth-counts")
    assert all(
        len(browser.find_elements("css selector", f"#{panel} svg"))
        for panel in ("traces", "truth", "methods")
    )
