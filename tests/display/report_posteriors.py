"""Posteriors to report on, with friendly and with hostile names."""

from __future__ import annotations

import numpy as np

from gflowdag.graph import erdos_renyi, is_acyclic
from gflowdag.posterior.posterior import Posterior

HOSTILE_NAMES = (
    "<script>window.hacked = 1</script>",
    '</script><img src=x onerror="window.hacked = 1">',
    "\"double\" & 'single' quotes",
    "a name that goes on " * 20,
    "日本語 и кириллица",
    "{{ 7 * 7 }} {% raw %}",
    "<!-- \\u003c --> \u2028",
    "line\nbreak, comma",
    '=HYPERLINK("http://example.org","x")',
)

LONG_NAMES = (
    "mean_arterial_blood_pressure_systolic",
    "mean_arterial_blood_pressure_diastolic",
    "mean_arterial_blood_pressure_at_rest",
    "concentration_of_glucose_in_blood_in_mmol_per_litre",
    "concentration_of_insulin_in_blood_in_mmol_per_litre",
)


def noisy_posterior(num_variables: int, num_samples: int, *, names=None, seed: int = 0, **facts) -> Posterior:
    """Samples around a random DAG: each drops some of its edges and reverses a few others."""
    rng = np.random.default_rng(seed)
    base = erdos_renyi(num_variables, 1.2 * num_variables, rng)
    samples = []
    for _ in range(num_samples):
        graph = base & (rng.random(base.shape) > 0.2)
        for i, j in rng.permutation(np.argwhere(graph))[: num_variables // 3]:
            changed = graph.copy()
            changed[i, j], changed[j, i] = False, True
            graph = changed if is_acyclic(changed) else graph
        samples.append(graph)
    names = names or [f"X{i}" for i in range(num_variables)]
    return Posterior(np.array(samples), names, log_scores=rng.normal(-500, 5, num_samples), **facts)


def hostile_posterior() -> Posterior:
    """Variables whose names try to be anything but text."""
    return noisy_posterior(len(HOSTILE_NAMES), 60, names=HOSTILE_NAMES)
