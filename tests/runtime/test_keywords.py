"""Misspelt names and impossible seeds are answered with a sentence at every public door."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest

import gflowdag as gd
from gflowdag.errors import GFlowDAGError
from gflowdag.estimators.registry import estimator_classes

NUMBERS = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])


@pytest.mark.parametrize(
    ("attempt", "meant"),
    [
        (lambda: gd.Knowledge(forbiden=[("a", "b")]), "forbidden"),
        (lambda: gd.Knowledge.from_dict({"requierd": []}), "required"),
        (lambda: gd.fit(NUMBERS, metod="mc3"), "method"),
        (lambda: gd.fit(NUMBERS, mising="drop"), "missing"),
        (lambda: gd.Dataset.from_frame(NUMBERS, mising="drop"), "missing"),
        (lambda: gd.Dataset.from_array(NUMBERS.to_numpy(), standardise=False), "standardize"),
        (lambda: gd.MC3(num_chain=4), "num_chains"),
        (lambda: gd.DAGGFlowNet(pre_set="paper"), "preset"),
        (lambda: gd.BGe(alfa_w=20), "alpha_w"),
        (lambda: gd.BDeu(es=2), "ess"),
        (lambda: gd.PaperRecipe(batchsize=4), "batch_size"),
        (lambda: gd.simulate.linear_gaussian(num_variabels=4), "num_variables"),
        (lambda: gd.load_dataset("asia", num_row=10), "num_rows"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_right_one(attempt, meant: str) -> None:
    with pytest.raises(GFlowDAGError, match=f"did you mean {meant}"):
        attempt()


def test_a_misspelt_name_is_a_type_error_too() -> None:
    with pytest.raises(TypeError, match="has no parameter 'forbiden'"):
        gd.Knowledge(forbiden=[])


@pytest.mark.parametrize("seed", [-1, 1.5, "one"])
@pytest.mark.parametrize("door", ["fit", "simulate", "resample", "effect", "next experiment"])
def test_an_impossible_seed_is_refused_in_a_sentence(seed, door: str) -> None:
    post = gd.Posterior(np.zeros((2, 3, 3), bool), ("a", "b", "c"))
    fitted = gd.fit(NUMBERS, method="exact", num_samples=10)
    doors = {
        "fit": lambda: gd.fit(NUMBERS, method="exact", random_state=seed),
        "simulate": lambda: gd.simulate.linear_gaussian(num_variables=3, num_rows=5, random_state=seed),
        "resample": lambda: post.resample(3, random_state=seed),
        "effect": lambda: fitted.effect(*fitted.names[:2], random_state=seed),
        "next experiment": lambda: fitted.next_experiments(random_state=seed),
    }
    with pytest.raises(GFlowDAGError, match="random_state must be a whole number, 0 or more"):
        doors[door]()


def test_editors_still_see_every_parameter() -> None:
    for kind in [*estimator_classes(), gd.Knowledge, gd.BGe, gd.PaperRecipe]:
        kinds = {each.kind for each in inspect.signature(kind).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds, kind
