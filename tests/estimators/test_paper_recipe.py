"""The recipe of the paper: official defaults, every constant in the user's hands, schedules of the plan."""

from __future__ import annotations

from dataclasses import asdict, fields, replace

import jax.numpy as jnp
import pytest
from typer.testing import CliRunner

import gflowdag as gd
from gflowdag.cli.app import app
from gflowdag.errors import GFlowDAGError, TooLargeError
from gflowdag.gflownet.learners.paper import PaperLearner
from gflowdag.gflownet.policies.linear_transformer import Sizes
from gflowdag.gflownet.spaces.edges import edge_space
from gflowdag.gflownet.trainer import Moment
from gflowdag.posterior.runs import read_config
from gflowdag.runtime.precision import double_precision
from gflowdag.score import make_score

SMALL = gd.PaperRecipe(embedding=8, num_heads=1, head_size=4, hidden=8, shared_blocks=1, head_blocks=0,
                       prefill=2, replay_capacity=50, batch_size=4, num_environments=2)  # fmt: skip
FAST = {"preset": "paper", "num_weighted": 20, "num_samples": 20, "num_held_out_graphs": 0, "random_state": 0}


def table():
    return gd.simulate.linear_gaussian(num_variables=3, num_rows=30, random_state=0).frame


def space():
    return edge_space(make_score(gd.Dataset.from_frame(table())))


def test_the_defaults_are_those_of_the_official_implementation():
    """Its command line and network as released in March 2022."""
    official = {
        "batch_size": 32, "learning_rate": 1e-5, "warmup": 1, "cooldown": 0.0, "max_gradient_norm": None,
        "huber_delta": 1.0, "target_period": 1000, "num_environments": 8, "prefill": 1000,
        "replay_capacity": 100_000, "exploration_iterations": None, "min_exploration": 0.1, "embedding": 128,
        "num_heads": 4, "head_size": 64, "hidden": 512, "shared_blocks": 3, "head_blocks": 2,
        "sees_scores": False, "edges_per_graph": 1, "tempering_spread": None,
        "tempering_rate": 0.01,
    }  # fmt: skip
    assert gd.PaperRecipe().to_dict() == official
    assert gd.DAGGFlowNet(preset="paper").training_preset(5).iterations == 100_000


@double_precision
def test_every_constant_reaches_the_training():
    edges = space()

    def reached(recipe):
        learner = recipe.learner(edges, batch_size=recipe.batch_size)
        parts = [getattr(learner, each.name) for each in fields(PaperLearner) if each.name != "space"]
        return [recipe.options(), *parts]

    before = reached(gd.PaperRecipe())
    assert before[1:] == [getattr(PaperLearner(edges), each.name) for each in fields(PaperLearner)][1:]
    for name, value in gd.PaperRecipe().to_dict().items():
        other = 0.5 if isinstance(value, float) else 7 if value is None else value + 1
        tempers = {"tempering_spread": 1.0} if name == "tempering_rate" else {}
        start = reached(replace(gd.PaperRecipe(), **tempers)) if tempers else before
        assert reached(replace(gd.PaperRecipe(), **tempers, **{name: other})) != start, name


def test_sizes_of_the_network_are_those_of_the_learner():
    recipe, sizes = gd.PaperRecipe().to_dict(), asdict(Sizes())
    assert {**sizes, "num_heads": sizes.pop("heads")}.items() <= recipe.items() | {("heads", 4)}


@double_precision
def test_exploration_falls_in_half_of_the_planned_iterations():
    learner = SMALL.learner(space(), batch_size=4)

    def exploration(learner, step, planned):
        moment = Moment(jnp.int32(step), jnp.int32(planned))
        return float(learner._exploration(moment))

    at = [exploration(learner, step, 1000) for step in (0, 250, 500, 999)]
    assert at == pytest.approx([1.0, 0.55, 0.1, 0.1])
    fixed = replace(SMALL, exploration_iterations=10).learner(learner.space, batch_size=4)
    assert exploration(fixed, 5, 1000) == pytest.approx(0.55)


def test_a_budget_plans_the_exploration_and_says_what_reproduces_the_run():
    timed = gd.DAGGFlowNet(**FAST, recipe=SMALL, budget=4.0).fit(table()).posterior_
    diagnosis = timed.diagnosis
    iterations, length = diagnosis.iterations, diagnosis.extra["exploration_iterations"]
    assert iterations is not None
    assert length >= iterations // 2
    counted = replace(SMALL, exploration_iterations=length)
    again = gd.DAGGFlowNet(**FAST, recipe=counted, iterations=iterations).fit(table()).posterior_
    assert (again.samples == timed.samples).all()


def test_a_recipe_is_read_from_a_file(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text("batch_size = 256\nlearning_rate = 1e-4\nmax_gradient_norm = 5.0\n")
    recipe = gd.PaperRecipe.from_toml(path)
    assert recipe == gd.PaperRecipe(batch_size=256, learning_rate=1e-4, max_gradient_norm=5.0)
    assert gd.PaperRecipe.from_dict(recipe.to_dict()) == recipe
    assert gd.DAGGFlowNet(preset="paper", recipe=recipe).training_preset(5).batch_size == 256
    assert gd.DAGGFlowNet(preset="paper", recipe=recipe, batch_size=8).training_preset(5).batch_size == 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bach_size = 3", "recipe.toml: the recipe has no parameter 'bach_size'; did you mean batch_size?"),
        ("batch_size = 0", "recipe.toml: batch_size must be 1 or more, got 0"),
        ("cooldown = 1.5", "cooldown must be 0 or a number between 0 and 1, got 1.5"),
        ("batch_size = ", "is not a TOML file"),
        ("batch_size = 9223372036854775808", "recipe.toml holds a whole number of more than 64 bits"),
        ("batch_size = 9223372036854775807", "batch_size must be at most 1000000000"),
        ("batch_size = 1" + 5000 * "0", "recipe.toml holds a whole number of more than 64 bits"),
        ("num_environments = 9\nreplay_capacity = 8", "the buffer must take one transition of every"),
    ],
)
def test_a_wrong_recipe_is_refused_with_a_sentence(tmp_path, text, message):
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    with pytest.raises(GFlowDAGError) as refused:
        gd.PaperRecipe.from_toml(path)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "sizes",
    [
        {"batch_size": 10**9},
        {"hidden": 10**9, "batch_size": 1},
        {"num_heads": 10**9, "head_size": 10**9},
        {"replay_capacity": 10**9},
        {"edges_per_graph": 10**9, "batch_size": 1000},
    ],
)
def test_a_recipe_that_no_machine_holds_is_refused_before_code_is_compiled(sizes):
    # Sizes whose product is beyond 64 bits end the process where XLA meets them.
    recipe = gd.PaperRecipe.from_dict(sizes)
    frame = gd.simulate.linear_gaussian(num_variables=25, num_rows=30, random_state=0).frame
    score = make_score(gd.Dataset.from_frame(frame))
    with pytest.raises(TooLargeError, match=r"recipe takes .* TiB"):
        recipe.learner(edge_space(score), batch_size=recipe.batch_size)


def test_a_recipe_is_for_the_preset_paper():
    with pytest.raises(GFlowDAGError, match="not for 'fast'"):
        gd.DAGGFlowNet(recipe=SMALL).fit(table())
    with pytest.raises(GFlowDAGError, match="must be a PaperRecipe, not dict"):
        gd.DAGGFlowNet(preset="paper", recipe={"batch_size": 3}).fit(table())  # type: ignore[arg-type]


def test_the_preset_of_the_paper_brings_the_papers_prior_unless_the_user_names_one():
    options = {**FAST, "recipe": SMALL, "iterations": 2}
    post = gd.fit(table(), method="dag-gflownet", **options)
    assert any("uniform over graphs, as in the paper" in note for note in post.diagnostics().notes)
    uniform = make_score(gd.Dataset.from_frame(table()), prior="uniform")
    assert post.log_scores == pytest.approx(uniform.log_score(post.samples))
    named = gd.fit(table(), method="dag-gflownet", prior="fair", **options)
    fair = make_score(gd.Dataset.from_frame(table()), prior="fair")
    assert named.log_scores == pytest.approx(fair.log_score(named.samples))
    assert not any("paper" in note for note in named.diagnostics().notes)
    assert gd.DAGGFlowNet().structure_prior == gd.ExactPosterior().structure_prior == "fair"


def test_the_command_line_takes_a_recipe_and_stores_its_content(tmp_path):
    path, csv, run = tmp_path / "recipe.toml", tmp_path / "table.csv", tmp_path / "run"
    constants = SMALL.to_dict() | {"sees_scores": "false"}
    lines = [f"{name} = {value}\n" for name, value in constants.items() if value is not None]
    path.write_text("".join(lines))
    table().to_csv(csv, index=False)
    arguments = ["fit", str(csv), "--method", "dag-gflownet", "--preset", "paper", "--iterations", "3"]
    told = CliRunner().invoke(
        app, [*arguments, "--recipe", str(path), "--samples", "5", "--quiet", "--out", str(run)]
    )
    assert told.exit_code == 0, told.output
    assert read_config(run)["recipe"] == SMALL.to_dict()
    assert read_config(run)["prior"] == "uniform"
    refused = CliRunner().invoke(app, ["fit", str(csv), "--method", "mc3", "--recipe", str(path)])
    assert "--recipe does not apply to the method mc3" in str(refused.exception)
