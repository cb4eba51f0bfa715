"""Knowledge by name becomes masks; whatever contradicts itself is refused by the names of the edges."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gflowdag.data import Knowledge
from gflowdag.errors import KnowledgeError

NAMES = ("age", "gene_a", "gene_b", "outcome")


def _edges(mask: np.ndarray) -> set[tuple[str, str]]:
    return {(NAMES[i], NAMES[j]) for i, j in np.argwhere(mask & ~np.eye(4, dtype=bool))}


def test_names_and_patterns_become_masks():
    knowledge = Knowledge(required=[("age", "outcome")], forbidden=[("re:gene_.*", "re:.*")], max_parents=2)
    required, forbidden, max_parents = knowledge.resolve(NAMES)
    assert _edges(required) == {("age", "outcome")}
    assert _edges(forbidden) == {
        *((gene, other) for gene in ("gene_a", "gene_b") for other in NAMES if other != gene),
        ("outcome", "age"),  # would close a cycle with the required edge
    }
    assert forbidden.diagonal().all()
    assert max_parents == 2


def test_exogenous_variables_have_no_parents():
    knowledge = Knowledge(exogenous=["age", "re:gene_.*"])
    _, forbidden, _ = knowledge.resolve(NAMES)
    assert forbidden[:, :3].all()
    assert not forbidden[:3, 3].any()
    assert Knowledge.from_dict(knowledge.to_dict()) == knowledge
    with pytest.raises(KnowledgeError, match="into exogenous variables: age → gene_a"):
        Knowledge(exogenous=["gene_a"], required=[("age", "gene_a")]).resolve(NAMES)
    with pytest.raises(KnowledgeError, match="`exogenous` is a list of names"):
        Knowledge(exogenous="age")
    with pytest.raises(KnowledgeError, match="no variable 'sex'"):
        Knowledge(exogenous=["sex"]).resolve(NAMES)


def test_a_pattern_must_match_the_whole_name():
    with pytest.raises(KnowledgeError, match="must match the whole name"):
        Knowledge(forbidden=[("re:gene", "age")]).resolve(NAMES)


def test_a_name_is_never_read_as_a_pattern():
    names = ("a.b", "axb")
    _, forbidden, _ = Knowledge(forbidden=[("a.b", "axb")]).resolve(names)
    np.testing.assert_array_equal(forbidden, [[True, True], [False, True]])


def test_tiers_forbid_edges_to_earlier_tiers_only():
    _, forbidden, _ = Knowledge(tiers=[["age"], ["re:gene_.*"]]).resolve(NAMES)
    assert _edges(forbidden) == {("gene_a", "age"), ("gene_b", "age")}


def test_edges_that_close_a_cycle_with_required_paths_are_forbidden():
    chain = Knowledge(required=[("age", "gene_a"), ("gene_a", "gene_b")])
    assert _edges(chain.resolve(NAMES).forbidden) == {
        ("gene_a", "age"),
        ("gene_b", "gene_a"),
        ("gene_b", "age"),
    }


def test_no_knowledge_forbids_the_diagonal_only():
    required, forbidden, max_parents = Knowledge().resolve(NAMES)
    assert not required.any()
    np.testing.assert_array_equal(forbidden, np.eye(4, dtype=bool))
    assert max_parents is None


@pytest.mark.parametrize(
    ("knowledge", "message"),
    [
        (
            Knowledge(required=[("age", "gene_a")], forbidden=[("age", "re:.*")]),
            "required and forbidden: age → gene_a",
        ),
        (
            Knowledge(
                required=[("age", "gene_a"), ("gene_a", "gene_b"), ("gene_b", "age"), ("age", "outcome")]
            ),
            "cycle: age → gene_a, gene_a → gene_b, gene_b → age. Remove",
        ),
        (Knowledge(required=[("age", "gene_a"), ("gene_a", "age")]), "cycle: age → gene_a, gene_a → age"),
        (
            Knowledge(required=[("outcome", "age")], tiers=[["age"], ["outcome"]]),
            "against the tiers: outcome → age",
        ),
        (
            Knowledge(required=[("re:gene_.*", "outcome"), ("age", "outcome")], max_parents=2),
            "'outcome' has 3 required parents.*age → outcome, gene_a → outcome, gene_b → outcome",
        ),
        (Knowledge(required=[("age", "age")]), "cannot cause itself: age → age"),
        (Knowledge(tiers=[["age", "gene_a"], ["gene_a"]]), "'gene_a' is in tier 1 and in tier 2"),
        (Knowledge(required=[("outcom", "age")]), "no variable 'outcom'; did you mean 'outcome'"),
        (Knowledge(tiers=[["zzz"]]), "the variables are age, gene_a, gene_b, outcome"),
        (Knowledge(forbidden=[("re:(", "age")]), "is not a regular expression that can be used here"),
    ],
)
def test_contradictions_are_refused_by_name(knowledge, message):
    with pytest.raises(KnowledgeError, match=message):
        knowledge.resolve(NAMES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"required": ["age"]}, "two names each; got 'age'"),
        ({"required": "age"}, "list of edges"),
        ({"forbidden": [("age", 3)]}, "two names each"),
        ({"tiers": ["age"]}, r"write \['age'\]"),
        ({"tiers": "age"}, "list of lists"),
        ({"tiers": [[1]]}, "list of names"),
        ({"max_parents": -1}, "0 or more"),
        ({"max_parents": 1.5}, "0 or more"),
        ({"max_parents": True}, "0 or more"),
    ],
)
def test_entries_of_another_form_are_refused_when_the_knowledge_is_made(options, message):
    with pytest.raises(KnowledgeError, match=message):
        Knowledge(**options)


def test_toml_and_plain_dictionaries_carry_the_same_knowledge(tmp_path):
    path = tmp_path / "knowledge.toml"
    path.write_text(
        'required = [["age", "outcome"]]\nforbidden = [["re:gene_.*", "age"]]\n'
        'tiers = [["age"], ["outcome"]]\nmax_parents = 3\n'
    )
    knowledge = Knowledge(
        required=[("age", "outcome")],
        forbidden=[("re:gene_.*", "age")],
        tiers=[["age"], ["outcome"]],
        max_parents=3,
    )
    assert Knowledge.from_toml(path) == knowledge
    assert Knowledge.from_dict(json.loads(json.dumps(knowledge.to_dict()))) == knowledge


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("requird = []", "Unknown key 'requird'"),
        ("required = [", "is not a TOML file"),
        ('tiers = "age"', "list of lists"),
    ],
)
def test_broken_toml_is_refused(tmp_path, content, message):
    path = tmp_path / "knowledge.toml"
    path.write_text(content)
    with pytest.raises(KnowledgeError, match=message):
        Knowledge.from_toml(path)


def test_a_missing_toml_file_is_refused(tmp_path):
    with pytest.raises(KnowledgeError, match="Cannot read"):
        Knowledge.from_toml(tmp_path / "nowhere.toml")
