import jax
import jax.numpy as jnp
import numpy as np

from gflowdag.gflownet.replay import draw_items, empty_replay, store


def test_the_buffer_holds_what_a_list_would():
    rng = np.random.default_rng(0)
    replay = empty_replay({"value": jnp.zeros((2,), jnp.float32), "flag": jnp.zeros((), bool)}, 7)
    put = jax.jit(store)
    expected: list[float] = []
    for start in range(0, 40, 4):
        values, keep = np.arange(start, start + 4.0), rng.random(4) < 0.6
        batch = {"value": jnp.asarray(np.stack([values, -values], 1), jnp.float32), "flag": jnp.asarray(keep)}
        replay = put(replay, batch, jnp.asarray(keep))
        expected += values[keep].tolist()
        assert int(replay.stored) == len(expected)
        held = np.asarray(replay.items["value"])[: min(len(expected), 7)]
        assert sorted(held[:, 0]) == expected[-7:]
        np.testing.assert_array_equal(held[:, 1], -held[:, 0])


def test_draws_come_uniformly_from_what_was_stored():
    replay = empty_replay(jnp.zeros((), jnp.int32), 10)
    replay = store(replay, jnp.arange(4, dtype=jnp.int32), jnp.ones(4, bool))
    drawn = np.asarray(draw_items(replay, jax.random.key(0), 4000))
    counts = np.bincount(drawn, minlength=4)
    assert len(counts) == 4
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(1000)
