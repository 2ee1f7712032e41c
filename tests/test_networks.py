"""Networks against plain computations of the same: convolutions, dueling heads, first weights."""

import math
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
from windvane.networks import (
    Architecture,
    Dense,
    DuelingHead,
    FeatureEncoder,
    FrameEncoder,
    PlainHead,
    QNetwork,
    activate,
    convolution_plan,
    glorot,
)
from windvane.spec import EnvSpec, FrameSpec

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
    return filled(lambda: architecture.build(env.spec, 2, conditioned, KEY))


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
    encoder = filled(lambda: FrameEncoder.make(KEY, (48, 48, 3), 16, "float32"))
    one, two = encoder.stages
    frames = np.random.default_rng(0).integers(0, 256, (3, 48, 48, 3)).astype(np.uint8)
    first = plain_convolution(frames.astype(np.float32) / 255, one.kernel, one.bias)
    assert first.shape == (3, 22, 22, 32)
    pooled = plain_pooling(leaky(first))
    assert pooled.shape == (3, 11, 11, 32)
    second = plain_convolution(pooled, two.kernel, two.bias)
    assert second.shape == (3, 4, 4, 48)
    flat = plain_pooling(leaky(second)).reshape(3, 2 * 2 * 48)
    features = leaky(flat @ np.asarray(encoder.dense.kernel) + np.asarray(encoder.dense.bias))
    assert np.allclose(eqx.filter_jit(encoder)(jnp.asarray(frames)), features, atol=1e-4)


def test_the_pool_of_four_has_the_gradient_of_a_maximum() -> None:
    """Few different numbers, so that some share it."""
    generator = np.random.default_rng(0)
    y = jnp.asarray(generator.integers(0, 3, (50, 4, 7)).astype(np.float32))
    given = jnp.asarray(generator.normal(size=(50, 7)).astype(np.float32))
    ours, theirs = (
        jax.vjp(function, y) for function in (networks.max_pool, lambda y: y.max(axis=-2))
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
    q_values = eqx.filter_jit(lambda n, p, w: n.q_values(n.encode(p[None]), w))
    together, alone = q_values(network, positions, weights), eqx.filter_jit(network)
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
        eqx.filter_eval_shape(lambda: Architecture().build(env.spec, 3, True, KEY)),
    )
    encoder, head = shapes.encoder, shapes.head
    assert [stage.kernel for stage in encoder.stages] == [(6, 6, 3, 32), (5, 5, 32, 48)]
    assert [stage.bias for stage in encoder.stages] == [(32,), (48,)]
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
    Architecture(64).build(Minecart(observation="pixels").spec, 2, True, KEY)
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


def test_signed_features_keep_their_zero() -> None:
    bounds = [(-1, 1), (-2, 4), (-8, 2), (0, 4), (-4, 0), (2, 6), (-math.inf, math.inf)]
    bounds += [(-3, math.inf), (-2, -2)]
    low, high = (tuple(float(pair[side]) for pair in bounds) for side in (0, 1))
    frame = FrameSpec((9,), "float32", low, high)
    seen = jnp.asarray([[0.25, 1, 1, 1, -1, 3, 1, 1, -2], [-0.5, -2, -8, 0, -4, 6, -1, -3, -2]])
    unit, signed = (
        np.asarray(FeatureEncoder.make(KEY, frame, 8, 0, "float32", False, scaling)(seen))
        for scaling in ("unit", "signed")
    )
    two, four = np.log(2), np.log(4)
    np.testing.assert_allclose(
        unit,
        [[0.625, 0.5, 0.9, 0.25, 0.75, 0.25, two, two, 0], [0.25, 0, 0, 0, 0, 1, -two, -four, 0]],
        rtol=1e-6,
    )  # fmt: skip
    expected = unit.copy()
    expected[:, :3] = [[0.25, 0.25, 0.125], [-0.5, -0.5, -1]]
    np.testing.assert_array_equal(signed, expected)


@pytest.mark.parametrize(
    ("wrong", "least"), [({"width": 0}, 1), ({"depth": 0}, 1), ({"encoder_depth": -1}, 0)]
)
def test_sizes_are_positive(wrong: dict[str, int], least: int) -> None:
    with pytest.raises(InputError, match=f"must be a whole number of at least {least}"):
        Architecture(**wrong)


@pytest.mark.parametrize("observation", ["scaled", "categories"])
def test_without_an_encoder_the_head_is_given_the_observation(observation: str) -> None:
    frame = FrameSpec((2,), "float32", (-1.0, -1.0), (1.0, 1.0))
    if observation == "categories":
        frame = FrameSpec((2,), "int32", categories=(3, 2))
    spec = EnvSpec(4, ("a", "b", "c"), frame)
    architecture = Architecture(width=8, depth=2, encoder_depth=0, dueling=False)
    network = architecture.build(spec, 3, True, KEY)
    weights = jnp.asarray([0.2, 0.3, 0.5])
    seen = jnp.asarray([0, 1], frame.dtype)
    expected = {"scaled": [0.5, 1.0], "categories": [1.0, 0.0, 0.0, 0.0, 1.0]}[observation]
    assert network.encoder.width == len(expected)
    head = network.head
    x = np.asarray(expected) @ np.asarray(head.features.kernel) + weights @ head.weights
    x = np.where(x >= 0, x, 0.01 * x) @ np.asarray(head.layers[0].kernel)
    q = np.where(x >= 0, x, 0.01 * x) @ np.asarray(head.values.kernel)
    np.testing.assert_allclose(network(seen, weights), q.reshape(4, 3), rtol=1e-5, atol=1e-6)


def test_an_unknown_precision_or_scaling_is_refused() -> None:
    with pytest.raises(Exception, match="float16"):
        Architecture(precision="float16")  # type: ignore[arg-type]
    with pytest.raises(Exception, match="none"):
        Architecture(feature_scaling="none")  # type: ignore[arg-type]


# --- images of other sizes


def positions(side: int) -> int:
    """What is left of a side after one stage."""
    return -(-side // 4) - 1


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("side", [*range(8, 90), 96, 128, 160, 210, 256, 333, 400, 479, 480])
def test_plans_leave_few_positions(side: int, channels: int) -> None:
    stages, left = convolution_plan((side, side, channels))
    assert stages[0] == (6, channels, 32)
    assert [stage[0] for stage in stages[1:]] == [5] * (len(stages) - 1)
    assert [stage[2] for stage in stages] == [32, 48, 64, 64, 64][: len(stages)]
    assert [stage[1] for stage in stages[1:]] == [stage[2] for stage in stages[:-1]]
    for _ in stages:
        side = positions(side)
    assert left == side * side
    assert 1 <= side <= 4


def test_the_papers_frames_have_the_papers_layers() -> None:
    assert convolution_plan((48, 48, 3)) == ([(6, 3, 32), (5, 32, 48)], 2 * 2)


@pytest.mark.parametrize("shape", [(8, 480, 3), (480, 8, 1), (17, 300, 4), (210, 160, 3)])
def test_plans_of_images_that_are_not_square(shape: tuple[int, ...]) -> None:
    stages, left = convolution_plan(shape)
    height, width = shape[:2]
    for number in range(len(stages)):
        assert number == 0 or min(height, width) >= 5
        height, width = positions(height), positions(width)
    assert left == height * width
    assert left > 0
    assert max(height, width) <= 4 or min(height, width) < 5


@pytest.mark.parametrize("shape", [(7, 48, 3), (48, 7, 3), (1, 1, 1)])
def test_images_that_are_too_small_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="at least 8 pixels high and wide"):
        convolution_plan(shape)


@pytest.mark.parametrize(
    "shape", [(8, 8, 1), (9, 11, 2), (21, 20, 4), (84, 84, 1), (61, 8, 3), (210, 160, 3)]
)
def test_images_of_any_size_are_encoded_as_by_plain_convolutions(shape: tuple[int, ...]) -> None:
    """Zeros are added below and on the right, to multiples of 4."""
    encoder = filled(lambda: FrameEncoder.make(KEY, shape, 8, "float32"))
    frames = np.random.default_rng(0).integers(0, 256, (2, *shape)).astype(np.uint8)
    x = frames.astype(np.float32) / 255
    for stage in encoder.stages:
        x = np.pad(x, ((0, 0), (0, -x.shape[1] % 4), (0, -x.shape[2] % 4), (0, 0)))
        # As from a kernel of 6x6: the last row and column of a smaller one see nothing.
        rest = 6 - stage.kernel.shape[0]
        kernel = jnp.pad(stage.kernel, ((0, rest), (0, rest), (0, 0), (0, 0)))
        x = plain_pooling(leaky(plain_convolution(x, kernel, stage.bias)))
    assert x.shape[1] * x.shape[2] == convolution_plan(shape)[1]
    dense = encoder.dense
    features = leaky(x.reshape(2, -1) @ np.asarray(dense.kernel) + np.asarray(dense.bias))
    assert encoder.width == 8
    assert np.allclose(eqx.filter_jit(encoder)(jnp.asarray(frames)), features, atol=1e-4)


SPECS = {
    "image": (FrameSpec((9, 12, 1), "uint8"), 3),
    "unbounded": (FrameSpec((3,), "float32", (-math.inf, 0, -1), (math.inf, math.inf, 1)), 2),
    "constant": (FrameSpec((2,), "float32", (0, 1), (1, 1)), 1),
    "categories": (FrameSpec((2,), "int32", categories=(3, 5)), 1),
}
EXTREMES = {
    "image": np.asarray([0, 255]),
    "unbounded": np.asarray([[-3e38, 3e38, -1], [0, 0, 0], [1e-30, 5, 1]]),
    "constant": np.asarray([[0.0, 1.0], [1.0, 1.0]]),
    "categories": np.asarray([[0, 0], [2, 4], [1, 3]]),
}


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_values_and_gradients_are_finite(name: str, precision: Any) -> None:
    frame, stack = SPECS[name]
    spec = EnvSpec(4, ("one", "other"), frame, stack)
    network = Architecture(8, 1, precision=precision).build(spec, 2, True, KEY)
    seen = [
        np.broadcast_to(one, spec.observation_shape).astype(frame.dtype) for one in EXTREMES[name]
    ]
    observations = jnp.asarray(np.stack(seen))
    weights = jnp.asarray([0.25, 0.75])

    @eqx.filter_jit
    def value_and_gradient(network: QNetwork, observations: Any) -> Any:
        def total(network: QNetwork) -> Any:
            q = jax.vmap(network, (0, None))(observations, weights)
            return jnp.abs(q).sum(), q

        return eqx.filter_value_and_grad(total, has_aux=True)(network)

    (_, q), gradient = value_and_gradient(network, observations)
    assert q.shape == (len(seen), 4, 2)
    assert np.isfinite(q).all()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    assert any(np.asarray(leaf).any() for leaf in jax.tree.leaves(gradient.encoder))


def plain_encoder(frame: FrameSpec) -> FeatureEncoder:
    """An encoder whose only layer changes nothing that is positive."""
    size = sum(frame.categories) or frame.shape[0]
    made = FeatureEncoder.make(KEY, frame, size, 1, "float32")
    return eqx.tree_at(lambda e: e.layers, made, (Dense(jnp.eye(size), jnp.zeros(size)),))


def test_entries_without_bounds_are_squashed() -> None:
    frame = FrameSpec((3,), "float32", (-math.inf, 0, 2), (math.inf, math.inf, 4))
    encoder = plain_encoder(frame)
    assert encoder.frame_shape == (3,)
    e = math.e
    seen = jnp.asarray([[e - 1, 0, 2], [0, e**3 - 1, 3], [1 - e, 1e30, 4]], jnp.float32)
    expected = [[1, 0, 0], [0, 3, 0.5], [-0.01, 30 * math.log(10), 1]]
    np.testing.assert_allclose(encoder(seen), expected, rtol=1e-5, atol=1e-6)


def test_entries_whose_bounds_are_equal_are_shifted_alone() -> None:
    encoder = plain_encoder(FrameSpec((2,), "float32", (0, 3), (2, 3)))
    np.testing.assert_allclose(encoder(jnp.asarray([[1.0, 3.0]])), [[0.5, 0]])


def test_categories_become_one_hot_vectors() -> None:
    encoder = plain_encoder(FrameSpec((2,), "int32", categories=(2, 3)))
    assert encoder.frame_shape == (2,)
    seen = jnp.asarray([[0, 2], [1, 0]], jnp.int32)
    assert np.array_equal(encoder(seen), [[1, 0, 0, 0, 1], [0, 1, 1, 0, 0]])


def normalised(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def activated(x: np.ndarray, layer_norm: bool) -> np.ndarray:
    return leaky(normalised(x) if layer_norm else x)


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("conditions", [0, 2])
def test_the_plain_head_is_dense_layers_on_features_and_weights(
    conditions: int, layer_norm: bool
) -> None:
    head = PlainHead.make(jax.random.key(0), 5, 8, 2, 3, 2, conditions, layer_norm)
    keys = jax.random.split(jax.random.key(1))
    features, weights = jax.random.normal(keys[0], (4, 5)), jax.random.uniform(keys[1], (4, 6, 2))
    found = np.asarray(head(features, weights))
    first = np.asarray(head.features.kernel)
    for n, m in ((0, 0), (3, 5)):
        x = np.asarray(features[n]) @ first
        if head.weights is not None:
            x = x + np.asarray(weights[n, m]) @ np.asarray(head.weights)
        x = activated(x, layer_norm)
        x = activated(x @ np.asarray(head.layers[0].kernel), layer_norm)
        expected = (x @ np.asarray(head.values.kernel)).reshape(3, 2)
        np.testing.assert_allclose(found[n, m], expected, rtol=1e-4, atol=1e-5)


def test_a_batch_of_observations_is_many_calls() -> None:
    spec = EnvSpec(3, ("one", "other"), FrameSpec((2,), "float32", (0.0,) * 2, (1.0,) * 2), 2)
    for changes in ({}, {"dueling": False, "layer_norm": True}):
        network = Architecture(width=8, depth=2, **changes).build(spec, 2, True, jax.random.key(0))
        keys = jax.random.split(jax.random.key(1))
        seen, weights = jax.random.uniform(keys[0], (5, 4)), jax.random.uniform(keys[1], (5, 2))
        found = network.batch(seen, weights)
        for n in range(5):
            np.testing.assert_allclose(found[n], network(seen[n], weights[n]), rtol=2e-5, atol=1e-6)


def test_normalisation_does_not_change_with_the_scale_of_a_layer() -> None:
    x = jax.random.normal(jax.random.key(0), (7, 32))
    np.testing.assert_allclose(activate(100 * x, True), activate(x, True), atol=2e-4)
    half = activate(x.astype(jnp.bfloat16), True)
    assert half.dtype == jnp.bfloat16
