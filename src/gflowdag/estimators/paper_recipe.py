"""The constants of the paper's recipe, each to be set in Python or in a TOML file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from gflowdag.data.toml import read_toml
from gflowdag.errors import GFlowDAGError, TooLargeError
from gflowdag.estimators.parameters import check_parameters, fraction, positive, whole
from gflowdag.gflownet.learners.edges import Tempering
from gflowdag.gflownet.learners.paper import PaperLearner
from gflowdag.gflownet.policies.linear_transformer import Sizes
from gflowdag.gflownet.spaces.edges import EdgeSpace
from gflowdag.gflownet.trainer import Options
from gflowdag.runtime.keywords import named_parameters
from gflowdag.runtime.messages import instead

_MOST_BYTES = 1 << 40  # that a recipe may take: more than any machine has


@named_parameters
@dataclass(frozen=True, kw_only=True)
class PaperRecipe:
    """Network and training of the preset `paper`; the defaults are those of the official implementation.

    Args:
        batch_size: transitions in a training step.
        learning_rate: of Adam.
        warmup: iterations in which the learning rate grows linearly; 1 for none.
        cooldown: fraction of the iterations, at the end, in which the learning rate falls to zero.
        max_gradient_norm: longer gradients are scaled down to this norm; by default none is.
        huber_delta: imbalance in nats from which on the loss grows linearly.
        target_period: iterations between copies of the network into the target network.
        num_environments: graphs that grow side by side, one edge in an iteration.
        prefill: random steps of every environment before training.
        replay_capacity: transitions in the replay buffer.
        exploration_iterations: iterations in which the fraction of random actions falls to the least one; by
            default half of those that are planned.
        min_exploration: the least fraction of random actions.
        embedding: size of the embedding of a source, of a target, and of an edge's bit.
        num_heads: heads of the attention.
        head_size: size of each head.
        hidden: width of the perceptron in each block.
        shared_blocks: blocks of the trunk.
        head_blocks: blocks that lead to stopping, and as many to the edges.
        sees_scores: whether the network sees the change of the score by every edge, and begins as if pairs
            of variables did not interact; by default it sees the graph alone.
        edges_per_graph: edges of each graph in a batch whose imbalance is trained on: that of its transition,
            and further ones.
        tempering_spread: the reward is tempered, and rises to the posterior while the imbalances of a batch
            spread less than so many nats; by default it is the posterior from the start.
        tempering_rate: relative change of the tempered reward's exponent in an iteration.
    """

    batch_size: int = whole(32)
    learning_rate: float = positive(1e-5)
    warmup: int = whole(1)
    cooldown: float = fraction(0.0, zero=True)
    max_gradient_norm: float | None = positive(None)
    huber_delta: float = positive(1.0)
    target_period: int = whole(1000)
    num_environments: int = whole(8)
    prefill: int = whole(1000)
    replay_capacity: int = whole(100_000)
    exploration_iterations: int | None = whole(None)
    min_exploration: float = fraction(0.1, zero=True)
    embedding: int = whole(128)
    num_heads: int = whole(4)
    head_size: int = whole(64)
    hidden: int = whole(512)
    shared_blocks: int = whole(3, least=0)
    head_blocks: int = whole(2, least=0)
    sees_scores: bool = False
    edges_per_graph: int = whole(1)
    tempering_spread: float | None = positive(None)
    tempering_rate: float = fraction(0.01)

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.num_environments > self.replay_capacity:
            raise GFlowDAGError(
                f"num_environments is {self.num_environments}, but replay_capacity only "
                f"{self.replay_capacity}: the buffer must take one transition of every environment"
            )

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """Read a recipe from a TOML file with any of the parameters of this class.

        For example::

            batch_size = 256
            learning_rate = 1e-4
            embedding = 64
        """
        content = read_toml(path, GFlowDAGError)
        try:
            return cls.from_dict(content)
        except GFlowDAGError as error:
            raise GFlowDAGError(f"{path}: {error}") from None

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; what is left out has its default."""
        known = [parameter.name for parameter in fields(cls)]
        for name in content:
            if name not in known:
                raise GFlowDAGError(f"the recipe has no parameter {name!r}; {instead(name, known)}")
        return cls(**content)

    def to_dict(self) -> dict[str, Any]:
        """All parameters, for a configuration file."""
        return asdict(self)

    def options(self) -> Options:
        """How the network is optimised."""
        return Options(
            learning_rate=self.learning_rate,
            warmup=self.warmup,
            clip=math.inf if self.max_gradient_norm is None else self.max_gradient_norm,
            target_period=self.target_period,
            cooldown=self.cooldown,
        )

    def learner(self, space: EdgeSpace, *, batch_size: int) -> PaperLearner:
        """What is trained."""
        self._check_memory(space.num_variables, batch_size)
        return PaperLearner(
            space,
            batch_size=batch_size,
            num_environments=self.num_environments,
            capacity=self.replay_capacity,
            prefill=self.prefill,
            exploration_iterations=self.exploration_iterations,
            min_exploration=self.min_exploration,
            huber_delta=self.huber_delta,
            sees_scores=self.sees_scores,
            edges_per_graph=self.edges_per_graph,
            tempering=self._tempering(),
            sizes=Sizes(
                embedding=self.embedding,
                heads=self.num_heads,
                head_size=self.head_size,
                hidden=self.hidden,
                shared_blocks=self.shared_blocks,
                head_blocks=self.head_blocks,
            ),
        )

    def _check_memory(self, d: int, batch_size: int) -> None:
        """Refuse what no machine holds: its sizes would overflow in compiled code, which ends the process."""
        widest = max(self.embedding, self.num_heads * self.head_size, self.hidden)
        parts = {
            "batch_size": 4 * batch_size * d * d * widest,  # what one layer gives, float32
            "hidden": 4 * widest * widest,  # its weights
            "replay_capacity": 2 * self.replay_capacity * d * d,  # graphs and their closures
            "edges_per_graph": 4 * batch_size * self.edges_per_graph,
        }
        name, needed = max(parts.items(), key=lambda part: part[1])
        if needed > _MOST_BYTES:
            raise TooLargeError(
                f"this recipe takes {needed / 2**40:.3g} TiB and more for {d} variables: use a smaller {name}"
            )

    def _tempering(self) -> Tempering | None:
        if self.tempering_spread is None:
            return None
        return Tempering(spread=self.tempering_spread, rate=self.tempering_rate)


RETUNED = PaperRecipe(
    batch_size=24,
    learning_rate=4e-3,
    warmup=50,
    cooldown=0.9,
    max_gradient_norm=10.0,
    target_period=10,
    num_environments=32,
    prefill=100,
    replay_capacity=20_000,
    min_exploration=0.3,
    embedding=16,
    head_size=8,
    hidden=64,
    shared_blocks=1,
    head_blocks=1,
    sees_scores=True,
    edges_per_graph=5,
    tempering_spread=4.0,
    tempering_rate=0.03,
)
"""The paper's method with a smaller network that sees the scores, a tempered reward and shorter training."""
