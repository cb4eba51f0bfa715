"""A program for tests: train and sample on several devices or in several processes, and keep the outcome.

python sharded_run.py OUT.npz EDGE,ORDER,PAPER 1,2,4 [HOST:PORT PROCESSES ID]
"""

from __future__ import annotations

import sys

from gflowdag.runtime.processes import connect, is_leader

if len(sys.argv) > 4:
    connect(sys.argv[4], int(sys.argv[5]), int(sys.argv[6]))

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from exact_flows import problem as edge_problem
from order_cases import problem as order_problem

from gflowdag.gflownet.learners.edges import EdgeLearner
from gflowdag.gflownet.learners.orders import OrderLearner
from gflowdag.gflownet.learners.paper import PaperLearner
from gflowdag.gflownet.policies.linear_transformer import Sizes
from gflowdag.gflownet.policies.orders import shaped_policy
from gflowdag.gflownet.sampling import Defence, sample
from gflowdag.gflownet.spaces.orders import OrderSpace
from gflowdag.gflownet.trainer import train
from gflowdag.orders.last_node import last_node_potential
from gflowdag.runtime.devices import data_parallel

BATCH, ITERATIONS = 8, 6
SMALL = Sizes(embedding=4, heads=1, head_size=4, hidden=8, shared_blocks=1, head_blocks=1)


def make_learner(name: str):
    if name == "order":
        given = order_problem()
        potential = last_node_potential(given.weights, given.table.scores, given.labels)
        space = OrderSpace(given.weights, jnp.asarray(given.labels), potential)
        return OrderLearner(space, batch=BATCH, width=8, depth=1, untrained_every=4)
    space = edge_problem(3)[1]
    if name == "paper":
        return PaperLearner(
            space, batch_size=BATCH, num_environments=BATCH, capacity=32, prefill=2, sizes=SMALL
        )
    return EdgeLearner(space, batch_size=BATCH, width=8, depth=1)


def outcome(name: str) -> dict[str, np.ndarray]:
    """Parameters and samples."""
    learner = make_learner(name)
    params = train(learner, jax.random.key(0), iterations=ITERATIONS).params
    key = jax.random.key(1)
    defence = Defence(shaped_policy, 4) if name == "order" else None
    drawn = sample(learner.space, params, key, 32, batch=16, defence=defence)
    if name == "paper":
        # It shifts the logits of all edges alike, which changes nothing: its gradient is nothing but
        # rounding, which Adam scales up to steps of full length.
        params = eqx.tree_at(lambda network: network.edge_head[-1].bias, params, jnp.zeros(1, jnp.float32))
    flat = [
        np.asarray(leaf, np.float64).ravel() for leaf in jax.tree.leaves(eqx.filter(params, eqx.is_array))
    ]
    return {
        "params": np.concatenate(flat),
        "samples": np.asarray(drawn.built),
        "log_ratio": np.asarray(drawn.log_ratio),
    }


if __name__ == "__main__":
    out, names, counts = sys.argv[1:4]
    kept = {}
    with jax.enable_x64(True):
        for name in names.split(","):
            for count in map(int, counts.split(",")):
                with data_parallel(count):
                    found = outcome(name)
                kept |= {f"{name} {count} {part}": array for part, array in found.items()}
    if is_leader():
        np.savez(out, **kept)
