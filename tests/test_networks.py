"""Networks against plain computations of the same: convolutions, dueling heads, first weights."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from windvane import networks
from windvane.envs.deep_sea_treasure import DeepSeaTreasure
from windvane.envs.minecart import Minecart
from windvane.errors import InputError
from windvane.networks import Architecture, Dense, DuelingHead, FrameEncoder, QNetwork, glorot

KEY = jax.random.key(0)


def leaky(x: np.ndarray) -> np.ndarray:
    return np.where(x >= 0, x, 0.01 * x)


def filled(make: Any) -> Any:
    """What `make` makes, filled with NumPy's numbers: quick, and biases that a test can see."""
    generator = np.random.default_rng(1)

    def fill(leaf: Any) -> jax.Array:
        spread = 1 / np.sqrt(leaf.shape[-2] if leaf.ndim > 1 else 10)
        return jnp.asarray(generator.normal(scale=spread, size=leaf.shape).astype(np.float32))

    return jax.tree.map(fill, eqx.filter_eval_shape(make))


def network_for(env: Any, conditioned: bool, precision: Any = "float32") -> QNetwork:
    architecture = Architecture(16, 2, precision=precision)
    return filled(lambda: architecture.build(env, 2, conditioned, KEY))


def plain_convolution(x: np.ndarray, kernel: jax.Array, bias: jax.Array) -> np.ndarray:
    convolved = jax.lax.conv_general_dilated(
        jnp.asarray(x), kernel, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return np.asarray(convolved + bias)


def plain_pooling(x: np.ndarray) -> np.ndarray:
    pooled = jax.lax.reduce_window(
        jnp.asarray(x), -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
    )
    return np.asarray(pooled)


def test_frames_are_encoded_as_by_plain_convolutions_and_pooling() -> None:
    encoder = filled(lambda: FrameEncoder.make(KEY, 16, "float32"))
    frames = np.random.default_rng(0).integers(0, 256, (3, 48, 48, 3)).astype(np.uint8)
    first = plain_convolution(frames.astype(np.float32) / 255, encoder.first, encoder.first_bias)
    assert first.shape == (3, 22, 22, 32)
    pooled = plain_pooling(leaky(first))
    assert pooled.shape == (3, 11, 11, 32)
    second = plain_convolution(pooled, encoder.second, encoder.second_bias)
    assert second.shape == (3, 4, 4, 48)
    flat = plain_pooling(leaky(second)).reshape(3, 2 * 2 * 48)
    features = leaky(flat @ np.asarray(encoder.dense.kernel) + np.asarray(encoder.dense.bias))
    assert np.allclose(eqx.filter_jit(encoder)(jnp.asarray(frames)), features, atol=1e-4)


def test_the_largest_of_four_has_the_gradient_of_a_maximum() -> None:
    """Few different numbers, so that some share it."""
    generator = np.random.default_rng(0)
    y = jnp.asarray(generator.integers(0, 3, (50, 4, 7)).astype(np.float32))
    given = jnp.asarray(generator.normal(size=(50, 7)).astype(np.float32))
    ours, theirs = (
        jax.vjp(function, y) for function in (networks.largest, lambda y: y.max(axis=-2))
    )
    assert np.array_equal(ours[0], theirs[0])
    assert np.allclose(ours[1](given)[0], theirs[1](given)[0], rtol=1e-6)


def plain_head(head: DuelingHead, features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Q-values of one moment for one weight vector, by the paper's formula."""
    parts = jax.tree.map(np.asarray, head)
    width = parts.bias.size // 2
    outcomes = []
    for stream, last in enumerate((parts.value, parts.advantage)):
        columns = slice(stream * width, (stream + 1) * width)
        kernel = parts.features[:, columns]
        if parts.weights is not None:
            kernel = np.concatenate([kernel, parts.weights[:, columns]])
            inputs = np.concatenate([features, weights])
        else:
            inputs = features
        x = leaky(inputs @ kernel + parts.bias[columns])
        for layer, bias in zip(parts.layers, parts.biases, strict=True):
            x = leaky(x @ layer[stream] + bias[stream])
        outcomes.append(x @ last.kernel + last.bias)
    value, advantage = outcomes[0], outcomes[1].reshape(parts.actions, -1)
    return value + (advantage - advantage.sum(0) / parts.actions)


@pytest.mark.parametrize("conditions", [0, 3])
def test_the_dueling_head_is_the_papers_formula_for_each_weight_vector(conditions: int) -> None:
    head = filled(lambda: DuelingHead.make(KEY, 10, 8, 3, 4, 2, conditions))
    generator = np.random.default_rng(0)
    features = generator.normal(size=(5, 10)).astype(np.float32)
    weights = generator.dirichlet(np.ones(3), (5, 6)).astype(np.float32)
    q = eqx.filter_jit(head)(jnp.asarray(features), jnp.asarray(weights))
    assert q.shape == (5, 6, 4, 2)
    for n in range(5):
        for m in range(6):
            assert np.allclose(q[n, m], plain_head(head, features[n], weights[n, m]), atol=1e-5)


def test_many_weight_vectors_at_once_are_many_calls() -> None:
    network = network_for(DeepSeaTreasure(), True)
    positions = jnp.asarray([[0, 0], [3, 4]], jnp.int32)
    weights = jnp.asarray([[[0.1, 0.9], [0.5, 0.5], [1.0, 0.0]], [[0.2, 0.8], [0.7, 0.3], [0, 1]]])
    judge = eqx.filter_jit(lambda n, p, w: n.judge(n.encode(p[None]), w))
    together, alone = judge(network, positions, weights), eqx.filter_jit(network)
    for n in range(2):
        for m in range(3):
            assert np.allclose(together[n, m], alone(positions[n], weights[n, m]), atol=1e-6)
    assert np.abs(together[0, 0] - together[0, 1]).max() > 1e-3


def test_without_conditions_the_weights_make_no_difference() -> None:
    network = eqx.filter_jit(network_for(DeepSeaTreasure(), False))
    here = jnp.zeros(2, jnp.int32)
    assert np.array_equal(network(here, jnp.asarray([1.0, 0.0])), network(here, jnp.ones(2) / 2))


def test_the_papers_network_has_the_papers_shapes() -> None:
    env = Minecart(observation="pixels")
    shapes = jax.tree.map(
        lambda leaf: leaf.shape,
        eqx.filter_eval_shape(lambda: Architecture().build(env, 3, True, KEY)),
    )
    encoder, head = shapes.encoder, shapes.head
    assert (encoder.first, encoder.second) == ((6, 6, 3, 32), (5, 5, 32, 48))
    assert encoder.dense.kernel == (192, 512)
    # Two frames of 512 features each, and three weights, for two streams of 512 units.
    assert (head.features, head.weights) == ((1024, 1024), (3, 1024))
    assert head.layers == ((2, 512, 512), (2, 512, 512))
    assert head.value.kernel == (512, 3)
    assert head.advantage.kernel == (512, 6 * 3)
    assert shapes.stack == 2


def test_glorots_numbers_are_uniform_up_to_their_limit() -> None:
    shares = np.asarray(glorot(KEY, (100, 64), 36, 60)).ravel() / np.sqrt(6 / 96)
    assert 0.99 < np.abs(shares).max() <= 1
    assert abs(shares.mean()) < 4 / np.sqrt(3 * shares.size)
    assert abs((np.abs(shares) < 0.5).mean() - 0.5) < 2 / np.sqrt(shares.size)


def test_every_layer_begins_with_glorots_numbers_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fans, keys = {}, set()

    def record(key: Any, shape: tuple[int, ...], fan_in: int, fan_out: int) -> jax.Array:
        fans[shape] = (fan_in, fan_out)
        keys.add(tuple(jax.random.key_data(key).tolist()))
        return jnp.zeros(shape)

    monkeypatch.setattr(networks, "glorot", record)
    Architecture(64).build(Minecart(observation="pixels"), 2, True, KEY)
    assert fans == {
        (6, 6, 3, 32): (6 * 6 * 3, 6 * 6 * 32),
        (5, 5, 32, 48): (5 * 5 * 32, 5 * 5 * 48),
        (192, 64): (192, 64),
        # A unit of a stream sees both frames' features and the weights.
        (128, 2 * 64): (128 + 3, 64),
        (3, 2 * 64): (128 + 3, 64),
        (2, 64, 64): (64, 64),
        (64, 2): (64, 2),
        (64, 6 * 2): (64, 6 * 2),
    }
    # The second and third layers of the streams have one shape.
    assert len(keys) == len(fans) + 1


@pytest.mark.parametrize("observation", ["features", "pixels"])
def test_half_precision_is_close_to_full(observation: str) -> None:
    env = Minecart(observation=observation)
    full, half = (network_for(env, True, precision) for precision in ("float32", "bfloat16"))
    generator = np.random.default_rng(0)
    if observation == "pixels":
        seen = jnp.asarray(generator.integers(0, 256, (2, 48, 48, 3)).astype(np.uint8))
    else:
        seen = jnp.asarray(generator.random(7).astype(np.float32))
    weights = jnp.asarray([0.2, 0.3, 0.5])
    exact, rounded = (eqx.filter_jit(network)(seen, weights) for network in (full, half))
    assert rounded.dtype == jnp.float32
    assert 0 < np.abs(exact - rounded).max() < 0.03 * np.abs(exact).max()


def test_features_are_scaled_to_their_bounds() -> None:
    network = network_for(DeepSeaTreasure(), False)
    identity = Dense(jnp.eye(2), jnp.zeros(2))
    encoder = eqx.tree_at(lambda e: e.layers, network.encoder, (identity,))
    corners = jnp.asarray([[0, 0], [11, 11], [11, 0]], jnp.int32)
    assert np.array_equal(encoder(corners), [[0, 0], [1, 1], [1, 0]])


@pytest.mark.parametrize("wrong", [{"width": 0}, {"depth": 0}, {"encoder_depth": -1}])
def test_sizes_are_positive(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match="must be a whole number of at least 1"):
        Architecture(**wrong)


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(Exception, match="float16"):
        Architecture(precision="float16")  # type: ignore[arg-type]
