"""The classes of a report: what is drawn as settled has been settled, by what the page names."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from report_reader import read

import gflowdag as gd
from gflowdag.graph import all_dags
from gflowdag.graph.equivalence import class_keys
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.posterior import Posterior


def test_a_class_is_shown_as_its_cpdag_with_the_number_of_its_members(tmp_path):
    chain, reverse, collider = np.zeros((3, 3, 3), dtype=bool)
    chain[0, 1] = chain[1, 2] = reverse[2, 1] = reverse[1, 0] = collider[0, 2] = collider[1, 2] = True
    posterior = Posterior(np.stack([chain, chain, reverse, collider]), "abc")
    classes = json.loads(read(posterior.report(tmp_path / "report.html")).json)["classes"]
    first, second = classes["shown"]
    assert first["probability"] == 0.75
    assert first["undirected"] == [[0, 1], [1, 2]]
    assert first["directed"] == []
    assert (first["members"], first["sampled"]) == ("3", 2)
    assert second["directed"] == [[0, 2], [1, 2]]


def chains_of_one_class(**facts) -> Posterior:
    """a → b → c, twice, and a ← b → c: one class, and b → c in all of it that was sampled."""
    graphs = np.zeros((3, 3, 3), dtype=bool)
    graphs[:, 1, 2] = graphs[:2, 0, 1] = graphs[2, 1, 0] = True
    return Posterior(graphs, "abc", **facts)


@pytest.mark.parametrize(
    ("said", "interventions", "knowledge"),
    [
        ("Here interventions can", [None] * 10 + ["b"] * 10, None),
        ("Here prior knowledge can", None, gd.Knowledge(forbidden=[("c", "b")])),
        ("Here interventions and prior knowledge can", ["b"] * 20, gd.Knowledge(forbidden=[("a", "c")])),
        ("Here interventions can", ["b"] * 20, gd.Knowledge(max_parents=1)),
    ],
)
def test_what_interventions_or_knowledge_decided_is_not_shown_as_open(
    said, interventions, knowledge, tmp_path
):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), columns=list("abc"))
    data = gd.Dataset.from_frame(frame, interventions=interventions, knowledge=knowledge)
    page = read(chains_of_one_class().report(tmp_path / "report.html", data=data))
    (found,) = json.loads(page.json)["classes"]["shown"]
    assert found["directed"] == [[1, 2]]
    assert found["undirected"] == [[0, 1]]
    assert found["members"] == "3"
    assert "Graphs that observations alone cannot tell apart" in page.text
    assert said in page.text
    assert "the data cannot tell apart" not in page.text


def table_with(knowledge: gd.Knowledge | None, names: str = "abc") -> gd.Dataset:
    values = np.random.default_rng(0).normal(size=(20, len(names)))
    return gd.Dataset.from_frame(pd.DataFrame(values, columns=list(names)), knowledge=knowledge)


def classes(posterior: Posterior, tmp_path, **context) -> list[dict]:
    """The cards of the report of a posterior."""
    return json.loads(read(posterior.report(tmp_path / "report.html", **context)).json)["classes"]["shown"]


def sampled_once() -> Posterior:
    """a → b → c, of a class of three graphs."""
    return Posterior(chains_of_one_class().samples[:1], "abc")


@pytest.mark.parametrize(
    ("knowledge", "directed", "undirected", "allowed"),
    [
        (gd.Knowledge(forbidden=[("a", "c")]), [], [[0, 1], [1, 2]], 3),
        (gd.Knowledge(forbidden=[("c", "b")]), [[1, 2]], [[0, 1]], 2),
        (gd.Knowledge(required=[("a", "b")]), [[0, 1], [1, 2]], [], 1),
    ],
)
def test_a_direction_is_open_where_knowledge_allows_both_even_in_a_class_sampled_once(
    knowledge, directed, undirected, allowed, tmp_path
):
    (found,) = classes(sampled_once(), tmp_path, data=table_with(knowledge))
    assert (found["directed"], found["undirected"]) == (directed, undirected)
    assert (found["basis"], found["graphs"], found["sampled"]) == ("allowed", allowed, 1)


def test_a_limit_of_parents_holds_and_does_not_choose_between_the_graphs_of_a_class(tmp_path):
    graphs = all_dags(4)
    most = pd.Series(graphs.sum(axis=1).max(axis=1)).groupby(class_keys(graphs)).nunique()
    assert (most == 1).all()
    data = table_with(gd.Knowledge(max_parents=1))
    page = read(sampled_once().report(tmp_path / "report.html", data=data))
    assert json.loads(page.json)["classes"]["shown"][0]["undirected"] == [[0, 1], [1, 2]]
    assert "Graphs that the data cannot tell apart" in page.text
    assert "the knowledge listed below holds" in page.text


@pytest.mark.parametrize("num_draws", [1, 19, 20])
def test_what_few_draws_share_may_be_chance(num_draws, tmp_path):
    draws = np.repeat(sampled_once().samples, num_draws, axis=0)
    (found,) = classes(Posterior(draws, "abc", diagnosis=Diagnostics(interventional=True)), tmp_path)
    assert found["directed"] == [[0, 1], [1, 2]]
    assert (found["basis"], found["graphs"]) == ("sampled", num_draws)
    assert found["maybeChance"] == (num_draws < 20)


def test_what_a_whole_class_has_is_no_chance(tmp_path):
    collider = np.zeros((1, 3, 3), dtype=bool)
    collider[0, [0, 1], 2] = True
    (found,) = classes(Posterior(collider, "abc", diagnosis=Diagnostics(interventional=True)), tmp_path)
    assert (found["basis"], found["maybeChance"]) == ("class", False)


def test_of_a_class_too_large_to_list_and_of_unknown_knowledge_the_samples_speak(tmp_path):
    complete = Posterior(np.triu(np.ones((1, 6, 6), dtype=bool), 1), "abcdef")  # one of 720 members
    knowledge = gd.Knowledge(forbidden=[("b", "a")])
    (large,) = classes(complete, tmp_path, data=table_with(knowledge, "abcdef"))
    assert (large["basis"], large["maybeChance"]) == ("sampled", True)
    unknown = replace(sampled_once(), diagnosis=Diagnostics(knowledge=True))
    for context in ({}, {"data": table_with(None)}):
        (found,) = classes(unknown, tmp_path, **context)
        assert (found["basis"], found["maybeChance"]) == ("sampled", True)


@pytest.mark.parametrize(
    "knowledge", [gd.Knowledge(), gd.Knowledge(max_parents=2), gd.Knowledge(tiers=[["a", "b"]])]
)
def test_knowledge_that_rules_out_no_graph_counts_as_none(knowledge, tmp_path):
    config = {"knowledge": "knowledge.toml"}
    page = read(sampled_once().report(tmp_path / "report.html", data=table_with(knowledge), config=config))
    (found,) = json.loads(page.json)["classes"]["shown"]
    assert (found["basis"], found["undirected"]) == ("class", [[0, 1], [1, 2]])
    assert "Graphs that the data cannot tell apart" in page.text
    assert "no prior knowledge was given" in page.text
    assert ("It rules out no graph" in page.text) == (knowledge != gd.Knowledge())


def test_the_settings_speak_of_knowledge_where_nothing_else_does(tmp_path):
    config = {"knowledge": "knowledge.toml"}
    text = read(sampled_once().report(tmp_path / "report.html", config=config)).text
    assert "Here prior knowledge can" in text
    assert "the knowledge that was given holds" in text
    text = read(sampled_once().report(tmp_path / "report.html", config=config, data=table_with(None))).text
    assert "no prior knowledge was given" in text


def test_a_posterior_knows_of_its_interventions_without_the_table(tmp_path):
    posterior = chains_of_one_class(diagnosis=Diagnostics(interventional=True))
    page = read(posterior.report(tmp_path / "report.html"))
    assert json.loads(page.json)["classes"]["shown"][0]["directed"] == [[1, 2]]
    assert "Here interventions can" in page.text


def test_from_observations_alone_every_direction_of_a_class_is_open(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), columns=list("abc"))
    data = gd.Dataset.from_frame(frame, knowledge=gd.Knowledge())
    page = read(chains_of_one_class().report(tmp_path / "report.html", data=data))
    assert json.loads(page.json)["classes"]["shown"][0]["undirected"] == [[0, 1], [1, 2]]
    assert "Graphs that the data cannot tell apart" in page.text
