"""Q-networks: an encoder for what is seen at one moment and a multi-objective dueling head.

An observation is `stack` moments: two frames, or one feature vector. Moments are encoded one by
one, so that a frame which two observations share need be encoded only once. All functions work on
batches; parameters are float32, products are computed in `precision`.
"""

import math
from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, Num, UInt8

from windvane.envs.environment import FRAME_SIZE, Environment
from windvane.errors import choose, require_positive_int

Precision = Literal["float32", "bfloat16"]

SLOPE = 0.01
"""Of LeakyReLU below zero."""


def leaky_relu(x: Array) -> Array:
    """The activation of all layers."""
    return jnp.where(x >= 0, x, SLOPE * x)


def glorot(key: Key[Array, ""], shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
    """Glorot's uniform initialisation."""
    limit = math.sqrt(6 / (fan_in + fan_out))
    return jax.random.uniform(key, shape, minval=-limit, maxval=limit)


class Dense(eqx.Module):
    """x @ kernel + bias."""

    kernel: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"]

    @staticmethod
    def make(key: Key[Array, ""], inputs: int, outputs: int) -> "Dense":
        """A layer with random weights and no bias yet."""
        return Dense(glorot(key, (inputs, outputs), inputs, outputs), jnp.zeros(outputs))

    def __call__(self, x: Num[Array, "*batch inputs"]) -> Num[Array, "*batch outputs"]:
        """Apply the layer."""
        return x @ self.kernel.astype(x.dtype) + self.bias.astype(x.dtype)


class FrameEncoder(eqx.Module):
    """The paper's: 32 filters of 6x6 and 48 of 5x5, both with stride 2 and followed by 2x2
    max-pooling, then a dense layer.
    """

    first: Float[Array, "6 6 3 filters"]
    first_bias: Float[Array, " filters"]
    second: Float[Array, "5 5 filters filters2"]
    second_bias: Float[Array, " filters2"]
    dense: Dense
    precision: Precision = eqx.field(static=True)

    @staticmethod
    def make(key: Key[Array, ""], width: int, precision: Precision) -> "FrameEncoder":
        """An encoder with random weights."""
        first, second, dense = jax.random.split(key, 3)
        return FrameEncoder(
            first=glorot(first, (6, 6, 3, 32), 36 * 3, 36 * 32),
            first_bias=jnp.zeros(32),
            second=glorot(second, (5, 5, 32, 48), 25 * 32, 25 * 48),
            second_bias=jnp.zeros(48),
            dense=Dense.make(dense, 2 * 2 * 48, width),
            precision=precision,
        )

    @property
    def moment(self) -> tuple[int, ...]:
        """Shape of what is seen at one moment."""
        return (FRAME_SIZE, FRAME_SIZE, 3)

    @property
    def width(self) -> int:
        """Number of features of a moment."""
        return self.dense.bias.shape[0]

    def __call__(self, frames: UInt8[Array, "n 48 48 3"]) -> Num[Array, "n width"]:
        """Features of each frame."""
        brightness = frames.astype(self.precision) / jnp.asarray(255, self.precision)
        x = leaky_relu(pooled_convolution(patches(brightness), self.first, self.first_bias))
        x = patches(jnp.pad(x, ((0, 0), (0, 1), (0, 1), (0, 0))))
        second = jnp.pad(self.second, ((0, 1), (0, 1), (0, 0), (0, 0)))
        x = leaky_relu(pooled_convolution(x, second, self.second_bias))
        return leaky_relu(self.dense(x.reshape(x.shape[0], -1)))


def patches(x: Num[Array, "n height width channels"]) -> Num[Array, "n rows columns inputs"]:
    """All 8x8 patches at multiples of 4 pixels: what a 6x6 convolution with stride 2 sees of an
    image for each 2x2 of its results.
    """
    n, height, width, channels = x.shape
    rows, columns = height // 4, width // 4
    x = x.reshape(n, rows, 4, columns, 4, channels)
    x = x.transpose(0, 1, 3, 2, 4, 5).reshape(n, rows, columns, 16 * channels)
    corners = [x[:, i : i + rows - 1, j : j + columns - 1] for i in (0, 1) for j in (0, 1)]
    return jnp.concatenate(corners, axis=-1)


def pooled_convolution(
    x: Num[Array, "n rows columns inputs"],
    kernel: Float[Array, "6 6 channels filters"],
    bias: Float[Array, " filters"],
) -> Num[Array, "n rows columns filters"]:
    """A 6x6 convolution with stride 2, not padded, and 2x2 max-pooling, of `patches`.

    It is one matrix product, with zeros for the part of a patch that a result does not see: so the
    pool is a maximum of neighbouring numbers, and products of many runs are one batched product.
    """
    channels, filters = kernel.shape[2:]
    shifted = [
        jnp.pad(kernel, ((i, 2 - i), (j, 2 - j), (0, 0), (0, 0))) for i in (0, 2) for j in (0, 2)
    ]
    matrix = jnp.stack(shifted, axis=3).reshape(2, 4, 2, 4, channels, 4 * filters)
    matrix = matrix.transpose(0, 2, 1, 3, 4, 5).reshape(64 * channels, 4 * filters)
    y = (x @ matrix.astype(x.dtype)).reshape(*x.shape[:-1], 4, filters)
    return largest(y) + bias.astype(x.dtype)


@jax.custom_vjp
def largest(y: Num[Array, "*batch four filters"]) -> Num[Array, "*batch filters"]:
    """The largest of four. Those that share it share its gradient, which is found in one pass;
    there is none in forward mode.
    """
    return y.max(axis=-2)


def _largest_forward(y: Array) -> tuple[Array, tuple[Array, Array]]:
    most = largest(y)
    return most, (y, most)


def _largest_backward(kept: tuple[Array, Array], gradient: Array) -> tuple[Array]:
    y, most = kept
    number = sum((y[..., k, :] == most).astype(y.dtype) for k in range(y.shape[-2]))
    share = (gradient / number)[..., None, :]
    return (jnp.where(y == most[..., None, :], share, jnp.zeros_like(share)),)


largest.defvjp(_largest_forward, _largest_backward)


class FeatureEncoder(eqx.Module):
    """Dense layers on features that are scaled to [0, 1] first."""

    low: tuple[float, ...] = eqx.field(static=True)
    high: tuple[float, ...] = eqx.field(static=True)
    layers: tuple[Dense, ...]
    precision: Precision = eqx.field(static=True)

    @property
    def moment(self) -> tuple[int, ...]:
        """Shape of what is seen at one moment."""
        return (len(self.low),)

    @property
    def width(self) -> int:
        """Number of features of a moment."""
        return self.layers[-1].bias.shape[0]

    def __call__(self, features: Num[Array, "n features"]) -> Num[Array, "n width"]:
        """Features of the features."""
        low, high = np.asarray(self.low, np.float32), np.asarray(self.high, np.float32)
        x = ((features.astype(jnp.float32) - low) / (high - low)).astype(self.precision)
        for layer in self.layers:
            x = leaky_relu(layer(x))
        return x


class DuelingHead(eqx.Module):
    """Value and advantage streams of three layers each, for every objective.

    The streams' first layers are one product. Where the head is conditioned on weights, their part
    of it is apart: features need to pass only once, however many weights they are judged by.
    """

    features: Float[Array, "inputs both_streams"]
    weights: Float[Array, "objectives both_streams"] | None
    bias: Float[Array, " both_streams"]
    layers: tuple[Float[Array, "2 width width"], ...]
    biases: tuple[Float[Array, "2 width"], ...]
    value: Dense
    advantage: Dense
    actions: int = eqx.field(static=True)

    @staticmethod
    def make(
        key: Key[Array, ""],
        inputs: int,
        width: int,
        depth: int,
        actions: int,
        outputs: int,
        conditions: int,
    ) -> "DuelingHead":
        """`outputs` values an action; `conditions` is the number of weights it is given, or 0."""
        keys = jax.random.split(key, depth + 3)
        fan = inputs + conditions
        return DuelingHead(
            features=glorot(keys[0], (inputs, 2 * width), fan, width),
            weights=glorot(keys[1], (conditions, 2 * width), fan, width) if conditions else None,
            bias=jnp.zeros(2 * width),
            layers=tuple(glorot(k, (2, width, width), width, width) for k in keys[4:]),
            biases=tuple(jnp.zeros((2, width)) for _ in keys[4:]),
            value=Dense.make(keys[2], width, outputs),
            advantage=Dense.make(keys[3], width, actions * outputs),
            actions=actions,
        )

    def __call__(
        self, features: Num[Array, "n inputs"], weights: Float[Array, "n m objectives"]
    ) -> Float[Array, "n m actions outputs"]:
        """Q-values of n moments, each for m weight vectors."""
        n, m, _ = weights.shape
        dtype = features.dtype
        x = (features @ self.features.astype(dtype) + self.bias.astype(dtype))[:, None]
        if self.weights is not None:
            x = x + weights.astype(dtype) @ self.weights.astype(dtype)
        x = leaky_relu(jnp.broadcast_to(x, (n, m, x.shape[-1])))
        # One row for each moment and weight vector; the streams side by side.
        x = x.reshape(n * m, 2, -1).transpose(1, 0, 2)
        for kernel, bias in zip(self.layers, self.biases, strict=True):
            x = leaky_relu(x @ kernel.astype(dtype) + bias.astype(dtype)[:, None])
        # Actions differ by less than what bfloat16 can tell apart in their values.
        x = x.astype(jnp.float32)
        value = self.value(x[0]).reshape(n, m, 1, -1)
        advantage = self.advantage(x[1]).reshape(n, m, self.actions, -1)
        return value + advantage - advantage.mean(2, keepdims=True)


class QNetwork(eqx.Module):
    """Q(s, a), a vector or a number for each action, perhaps conditioned on weights."""

    encoder: FrameEncoder | FeatureEncoder
    head: DuelingHead
    stack: int = eqx.field(static=True)

    def encode(self, moments: Num[Array, "k n *moment"]) -> Num[Array, "k n width"]:
        """Features of each of k moments of n observations."""
        k, n, *moment = moments.shape
        return self.encoder(moments.reshape(k * n, *moment)).reshape(k, n, -1)

    def judge(
        self, features: Num[Array, "stack n width"], weights: Float[Array, "n m objectives"]
    ) -> Float[Array, "n m actions outputs"]:
        """Q-values of n encoded observations for m weight vectors each."""
        return self.head(jnp.concatenate(list(features), axis=-1), weights)

    def __call__(
        self, observation: Num[Array, "..."], weights: Float[Array, " objectives"]
    ) -> Float[Array, "actions outputs"]:
        """Q-values of one observation for one weight vector."""
        moments = observation.reshape(self.stack, 1, *self.encoder.moment)
        return self.judge(self.encode(moments), weights[None, None])[0, 0]


class Architecture(eqx.Module):
    """Sizes of a network; the paper's by default."""

    width: int = eqx.field(static=True, default=512)
    """Units of every dense layer."""
    depth: int = eqx.field(static=True, default=3)
    """Layers of each stream of the head."""
    encoder_depth: int = eqx.field(static=True, default=1)
    """Dense layers that encode features; frames have one after their convolutions."""
    precision: Precision = eqx.field(static=True, default="float32")
    """What products are computed in; parameters are always float32."""

    def __check_init__(self) -> None:
        require_positive_int("the width of a network", self.width)
        require_positive_int("the depth of a network's head", self.depth)
        require_positive_int("the depth of a feature encoder", self.encoder_depth)
        choose("precision", self.precision, get_args(Precision))

    def build(
        self, env: Environment[Any], outputs: int, conditioned: bool, key: Key[Array, ""]
    ) -> QNetwork:
        """A network for what `env` shows, with `outputs` values an action."""
        encoder_key, head_key = jax.random.split(key)
        if env.observation == "pixels":
            stack = 2
            encoder = FrameEncoder.make(encoder_key, self.width, self.precision)
        else:
            stack = 1
            low, high = (tuple(np.asarray(b, float).tolist()) for b in env.feature_bounds)
            sizes = [len(low)] + [self.width] * self.encoder_depth
            keys = jax.random.split(encoder_key, self.encoder_depth)
            pairs = zip(keys, sizes[:-1], sizes[1:], strict=True)
            layers = tuple(Dense.make(k, i, o) for k, i, o in pairs)
            encoder = FeatureEncoder(low, high, layers, self.precision)
        conditions = env.num_objectives if conditioned else 0
        head = DuelingHead.make(
            head_key, stack * self.width, self.width, self.depth, env.num_actions, outputs,
            conditions,
        )  # fmt: skip
        return QNetwork(encoder, head, stack)
