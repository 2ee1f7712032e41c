"""Q-networks: an encoder for one frame and a multi-objective head, dueling or plain.

An observation is `stack` frames: images or vectors. Frames are encoded one by one, so that a frame
which two observations share is encoded only once. All functions work on batches; parameters are
float32, products are computed in `precision`.
"""

import math
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, Num, UInt8

from windvane import kernels
from windvane.errors import InputError, choose, require_int, require_positive_int
from windvane.spec import SMALLEST_IMAGE, EnvSpec, FrameSpec

Precision = Literal["float32", "bfloat16"]
Scaling = Literal["unit", "signed"]

SLOPE = 0.01
"""Slope of LeakyReLU below zero."""
FILTERS = (32, 48, 64)
"""Filters of the convolutions; the last number is that of all further ones."""


def leaky_relu(x: Array) -> Array:
    """The activation of all layers."""
    return jnp.where(x >= 0, x, SLOPE * x)


def activate(x: Array, layer_norm: bool) -> Array:
    """The activation, of a layer's output that is perhaps normalised first (Ba et al., 2016; here
    without a gain and an offset of its own, as every layer has a bias).
    """
    if layer_norm:
        wide = x.astype(jnp.float32)
        centred = wide - wide.mean(-1, keepdims=True)
        variance = jnp.square(centred).mean(-1, keepdims=True)
        x = (centred * jax.lax.rsqrt(variance + 1e-5)).astype(x.dtype)
    return leaky_relu(x)


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


class ConvolutionStage(eqx.Module):
    """A convolution with stride 2, 2x2 max-pooling and the activation: a side of s shrinks to
    ceil(s / 4) - 1.
    """

    kernel: Float[Array, "side side channels filters"]
    bias: Float[Array, " filters"]

    @staticmethod
    def make(key: Key[Array, ""], side: int, channels: int, filters: int) -> "ConvolutionStage":
        """Random weights; `side` is the kernel's, 5 or 6."""
        area = side * side
        kernel = glorot(key, (side, side, channels, filters), area * channels, area * filters)
        return ConvolutionStage(kernel, jnp.zeros(filters))

    def __call__(self, x: Num[Array, "n height width channels"]) -> Num[Array, "n rows columns f"]:
        """Apply the stage; images are padded with zeros to multiples of 4 pixels."""
        _, height, width, _ = x.shape
        if height % 4 or width % 4:
            x = jnp.pad(x, ((0, 0), (0, -height % 4), (0, -width % 4), (0, 0)))
        rest = 6 - self.kernel.shape[0]
        kernel = (
            jnp.pad(self.kernel, ((0, rest), (0, rest), (0, 0), (0, 0))) if rest else self.kernel
        )
        return leaky_relu(pooled_convolution(extract_patches(x), kernel, self.bias))


class FrameEncoder(eqx.Module):
    """The paper's for 48x48 frames: 32 filters of 6x6 and 48 of 5x5, both with stride 2 and
    followed by 2x2 max-pooling, then a dense layer. Larger images pass through more such stages,
    until at most 4x4 positions are left; smaller ones through fewer.
    """

    stages: tuple[ConvolutionStage, ...]
    dense: Dense
    frame_shape: tuple[int, ...] = eqx.field(static=True)
    precision: Precision = eqx.field(static=True)
    layer_norm: bool = eqx.field(static=True, default=False)

    @staticmethod
    def make(
        key: Key[Array, ""],
        frame_shape: tuple[int, ...],
        width: int,
        precision: Precision,
        layer_norm: bool = False,
    ) -> "FrameEncoder":
        """An encoder with random weights for frames of (height, width, channels)."""
        plan, positions = convolution_plan(frame_shape)
        *keys, dense_key = jax.random.split(key, len(plan) + 1)
        stages = tuple(
            ConvolutionStage.make(k, *stage) for k, stage in zip(keys, plan, strict=True)
        )
        dense = Dense.make(dense_key, positions * plan[-1][2], width)
        return FrameEncoder(stages, dense, tuple(frame_shape), precision, layer_norm)

    @property
    def width(self) -> int:
        """Number of features per frame."""
        return self.dense.bias.shape[0]

    def __call__(self, frames: UInt8[Array, "n height width channels"]) -> Num[Array, "n features"]:
        """Features of each frame."""
        first, *others = self.stages
        if kernel := kernels.first_stage(frames.shape, self.precision, SLOPE):
            x = kernel(frames, first.kernel, first.bias)
        else:
            x = first(frames.astype(self.precision) / jnp.asarray(255, self.precision))
        for stage in others:
            x = stage(x)
        return activate(self.dense(x.reshape(x.shape[0], -1)), self.layer_norm)


def convolution_plan(frame_shape: tuple[int, ...]) -> tuple[list[tuple[int, int, int]], int]:
    """(kernel side, channels, filters) of each stage for an image, and the positions left then."""
    height, width, channels = frame_shape
    if min(height, width) < SMALLEST_IMAGE:
        raise InputError(
            f"an image must be at least {SMALLEST_IMAGE} pixels high and wide, not {height}x{width}"
        )
    stages = []
    while not stages or (max(height, width) > 4 and min(height, width) >= 5):
        filters = FILTERS[min(len(stages), len(FILTERS) - 1)]
        stages.append((5 if stages else 6, channels, filters))
        height, width, channels = -(-height // 4) - 1, -(-width // 4) - 1, filters
    return stages, height * width


def extract_patches(
    x: Num[Array, "n height width channels"],
) -> Num[Array, "n rows columns inputs"]:
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
    """A 6x6 convolution with stride 2, not padded, and 2x2 max-pooling, of `extract_patches`.

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
    return max_pool(y) + bias.astype(x.dtype)


@jax.custom_vjp
def max_pool(y: Num[Array, "*batch four filters"]) -> Num[Array, "*batch filters"]:
    """The maximum of four. Ties share the gradient, which is found in one pass; there is none in
    forward mode.
    """
    return y.max(axis=-2)


def _max_pool_forward(y: Array) -> tuple[Array, tuple[Array, Array]]:
    most = max_pool(y)
    return most, (y, most)


def _max_pool_backward(kept: tuple[Array, Array], gradient: Array) -> tuple[Array]:
    y, most = kept
    number = sum((y[..., k, :] == most).astype(y.dtype) for k in range(y.shape[-2]))
    share = (gradient / number)[..., None, :]
    return (jnp.where(y == most[..., None, :], share, jnp.zeros_like(share)),)


max_pool.defvjp(_max_pool_forward, _max_pool_backward)


class FeatureEncoder(eqx.Module):
    """Dense layers on a vector, perhaps none. Entries with bounds are scaled to [0, 1] first,
    entries without are squashed by sign(x) log(1 + |x|), and categories become one-hot vectors.
    With the scaling "signed", bounds on both sides of 0 are scaled into [-1, 1], and 0 stays 0.
    """

    low: tuple[float, ...] = eqx.field(static=True)
    high: tuple[float, ...] = eqx.field(static=True)
    layers: tuple[Dense, ...]
    precision: Precision = eqx.field(static=True)
    categories: tuple[int, ...] = eqx.field(static=True, default=())
    layer_norm: bool = eqx.field(static=True, default=False)
    scaling: Scaling = eqx.field(static=True, default="unit")

    @staticmethod
    def make(
        key: Key[Array, ""],
        frame: FrameSpec,
        width: int,
        depth: int,
        precision: Precision,
        layer_norm: bool = False,
        scaling: Scaling = "unit",
    ) -> "FeatureEncoder":
        """An encoder with random weights."""
        sizes = [sum(frame.categories) or frame.shape[0]] + [width] * depth
        keys = jax.random.split(key, depth) if depth else ()
        pairs = zip(keys, sizes[:-1], sizes[1:], strict=True)
        layers = tuple(Dense.make(k, inputs, outputs) for k, inputs, outputs in pairs)
        return FeatureEncoder(
            frame.low, frame.high, layers, precision, frame.categories, layer_norm, scaling
        )

    @property
    def frame_shape(self) -> tuple[int, ...]:
        """Shape of what is seen at one moment."""
        return (len(self.low or self.categories),)

    @property
    def width(self) -> int:
        """Number of features per frame."""
        if not self.layers:
            return sum(self.categories) or len(self.low)
        return self.layers[-1].bias.shape[0]

    def __call__(self, features: Num[Array, "n entries"]) -> Num[Array, "n width"]:
        """Features of the features."""
        x = self._one_hot(features) if self.categories else self._scaled(features)
        x = x.astype(self.precision)
        for layer in self.layers:
            x = activate(layer(x), self.layer_norm)
        return x

    def _scaled(self, features: Num[Array, "n entries"]) -> Float[Array, "n entries"]:
        x = features.astype(jnp.float32)
        low, high = np.asarray(self.low, np.float32), np.asarray(self.high, np.float32)
        if self.scaling == "signed":
            largest = np.maximum(-low, high)
            signed = (low < 0) & (high > 0) & np.isfinite(largest)
            low, high = np.where(signed, np.float32(0), low), np.where(signed, largest, high)
        span = high - low
        bounded = np.isfinite(span)
        if bounded.all() and (span > 0).all():
            return (x - low) / span
        span = np.where(bounded & (span > 0), span, 1).astype(np.float32)
        scaled = (x - np.where(bounded, low, 0).astype(np.float32)) / span
        return jnp.where(bounded, scaled, jnp.sign(x) * jnp.log1p(jnp.abs(x)))

    def _one_hot(self, features: Num[Array, "n entries"]) -> Float[Array, "n categories"]:
        columns = [
            jax.nn.one_hot(features[:, index], number)
            for index, number in enumerate(self.categories)
        ]
        return jnp.concatenate(columns, axis=-1)


class DuelingHead(eqx.Module):
    """Value and advantage streams of three layers each, for every objective.

    The streams' first layers are one product. Where the head is conditioned on weights, their part
    of it is apart: features pass only once, however many weight vectors they are combined with.
    """

    features: Float[Array, "inputs both_streams"]
    weights: Float[Array, "objectives both_streams"] | None
    bias: Float[Array, " both_streams"]
    layers: tuple[Float[Array, "2 width width"], ...]
    biases: tuple[Float[Array, "2 width"], ...]
    value: Dense
    advantage: Dense
    actions: int = eqx.field(static=True)
    layer_norm: bool = eqx.field(static=True, default=False)

    @staticmethod
    def make(
        key: Key[Array, ""],
        inputs: int,
        width: int,
        depth: int,
        actions: int,
        outputs: int,
        conditions: int,
        layer_norm: bool = False,
    ) -> "DuelingHead":
        """`outputs` values per action; `conditions` is the number of weights it is given, or 0."""
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
            layer_norm=layer_norm,
        )

    @property
    def last(self) -> tuple[Dense, ...]:
        """The last layer of each stream."""
        return self.value, self.advantage

    @property
    def outputs(self) -> int:
        """Values per action."""
        return self.value.bias.size

    def __call__(
        self, features: Num[Array, "n inputs"], weights: Float[Array, "n m objectives"]
    ) -> Float[Array, "n m actions outputs"]:
        """Q-values of n observations, each for m weight vectors."""
        n, m, _ = weights.shape
        dtype = features.dtype
        x = (features @ self.features.astype(dtype) + self.bias.astype(dtype))[:, None]
        if self.weights is not None:
            x = x + weights.astype(dtype) @ self.weights.astype(dtype)
        # One row per observation and weight vector; the two streams are a batch of products.
        x = jnp.broadcast_to(x, (n, m, x.shape[-1])).reshape(n * m, 2, -1)
        x = activate(x, self.layer_norm).transpose(1, 0, 2)
        for kernel, bias in zip(self.layers, self.biases, strict=True):
            x = activate(x @ kernel.astype(dtype) + bias.astype(dtype)[:, None], self.layer_norm)
        # Actions differ by less than what bfloat16 can tell apart in their values.
        x = x.astype(jnp.float32)
        value = self.value(x[0]).reshape(n, m, 1, -1)
        advantage = self.advantage(x[1]).reshape(n, m, self.actions, -1)
        return value + advantage - advantage.mean(2, keepdims=True)


class PlainHead(eqx.Module):
    """Dense layers, the last of which has a value for every action and objective. It does half the
    work of a dueling head of the same width.
    """

    features: Dense
    weights: Float[Array, "objectives width"] | None
    layers: tuple[Dense, ...]
    values: Dense
    actions: int = eqx.field(static=True)
    layer_norm: bool = eqx.field(static=True, default=False)

    @staticmethod
    def make(
        key: Key[Array, ""],
        inputs: int,
        width: int,
        depth: int,
        actions: int,
        outputs: int,
        conditions: int,
        layer_norm: bool = False,
    ) -> "PlainHead":
        """As `DuelingHead.make`."""
        keys = jax.random.split(key, depth + 2)
        fan = inputs + conditions
        return PlainHead(
            features=Dense(glorot(keys[0], (inputs, width), fan, width), jnp.zeros(width)),
            weights=glorot(keys[1], (conditions, width), fan, width) if conditions else None,
            layers=tuple(Dense.make(k, width, width) for k in keys[3:]),
            values=Dense.make(keys[2], width, actions * outputs),
            actions=actions,
            layer_norm=layer_norm,
        )

    @property
    def last(self) -> tuple[Dense, ...]:
        """The last layer."""
        return (self.values,)

    @property
    def outputs(self) -> int:
        """Values per action."""
        return self.values.bias.size // self.actions

    def __call__(
        self, features: Num[Array, "n inputs"], weights: Float[Array, "n m objectives"]
    ) -> Float[Array, "n m actions outputs"]:
        """Q-values of n observations, each for m weight vectors."""
        n, m, _ = weights.shape
        x = self.features(features)[:, None]
        if self.weights is not None:
            x = x + weights.astype(x.dtype) @ self.weights.astype(x.dtype)
        x = activate(jnp.broadcast_to(x, (n, m, x.shape[-1])).reshape(n * m, -1), self.layer_norm)
        for layer in self.layers:
            x = activate(layer(x), self.layer_norm)
        return self.values(x.astype(jnp.float32)).reshape(n, m, self.actions, -1)


class QNetwork(eqx.Module):
    """Q(s, a), a vector or a number for each action, perhaps conditioned on weights."""

    encoder: FrameEncoder | FeatureEncoder
    head: DuelingHead | PlainHead
    stack: int = eqx.field(static=True)

    @jax.named_scope("encoder")
    def encode(self, frames: Num[Array, "k n *frame"]) -> Num[Array, "k n width"]:
        """Features of each of k frames of n observations."""
        k, n, *frame = frames.shape
        return self.encoder(frames.reshape(k * n, *frame)).reshape(k, n, -1)

    @jax.named_scope("head")
    def q_values(
        self, features: Num[Array, "stack n width"], weights: Float[Array, "n m objectives"]
    ) -> Float[Array, "n m actions outputs"]:
        """Q-values of n encoded observations for m weight vectors each."""
        return self.head(jnp.concatenate(list(features), axis=-1), weights)

    def __call__(
        self, observation: Num[Array, "..."], weights: Float[Array, " objectives"]
    ) -> Float[Array, "actions outputs"]:
        """Q-values of one observation for one weight vector."""
        return self.batch(observation[None], weights[None])[0]

    def per_weights(
        self, observation: Num[Array, "..."], weights: Float[Array, "m objectives"]
    ) -> Float[Array, "m actions outputs"]:
        """Q-values of one observation, which is encoded once, for m weight vectors."""
        frames = observation.reshape(self.stack, 1, *self.encoder.frame_shape)
        return self.q_values(self.encode(frames), weights[None])[0]

    def batch(
        self, observations: Num[Array, "n ..."], weights: Float[Array, "n objectives"]
    ) -> Float[Array, "n actions outputs"]:
        """Q-values of n observations, each for a weight vector of its own."""
        n = len(observations)
        frames = observations.reshape(n, self.stack, *self.encoder.frame_shape).swapaxes(0, 1)
        return self.q_values(self.encode(frames), weights[:, None])[:, 0]


class Architecture(eqx.Module):
    """Sizes of a network; the paper's by default."""

    width: int = eqx.field(static=True, default=512)
    """Units of every dense layer."""
    depth: int = eqx.field(static=True, default=3)
    """Layers of each stream of the head."""
    encoder_depth: int = eqx.field(static=True, default=1)
    """Dense layers that encode features before the weights join them; frames have one after their
    convolutions."""
    precision: Precision = eqx.field(static=True, default="float32")
    """What products are computed in; parameters are always float32."""
    dueling: bool = eqx.field(static=True, default=True)
    """Whether the head has a stream for values and one for advantages."""
    layer_norm: bool = eqx.field(static=True, default=False)
    """Whether dense layers are normalised before their activation."""
    feature_scaling: Scaling = eqx.field(static=True, default="unit")
    """How entries of vectors with bounds are scaled; see `FeatureEncoder`."""

    def __check_init__(self) -> None:
        require_positive_int("the width of a network", self.width)
        require_positive_int("the depth of a network's head", self.depth)
        require_int("the depth of a feature encoder", self.encoder_depth, 0)
        choose("precision", self.precision, get_args(Precision))
        choose("feature_scaling", self.feature_scaling, get_args(Scaling))

    def build(
        self, spec: EnvSpec, outputs: int, conditioned: bool, key: Key[Array, ""]
    ) -> QNetwork:
        """A network for what `spec` shows, with `outputs` values per action."""
        encoder_key, head_key = jax.random.split(key)
        if spec.frame.is_image:
            encoder = FrameEncoder.make(
                encoder_key, spec.frame.shape, self.width, self.precision, self.layer_norm
            )
        else:
            encoder = FeatureEncoder.make(
                encoder_key, spec.frame, self.width, self.encoder_depth, self.precision,
                self.layer_norm, self.feature_scaling,
            )  # fmt: skip
        conditions = spec.num_objectives if conditioned else 0
        make = DuelingHead.make if self.dueling else PlainHead.make
        head = make(
            head_key, spec.stack * encoder.width, self.width, self.depth, spec.num_actions, outputs,
            conditions, self.layer_norm,
        )  # fmt: skip
        return QNetwork(encoder, head, spec.stack)
