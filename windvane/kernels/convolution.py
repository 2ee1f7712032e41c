"""The first convolution stage of uint8 frames, with its gradient, as a GPU kernel.

Written in Pallas for Triton. It reads frames as they are stored, and patches of them never leave a
multiprocessor; XLA writes them to memory, seven bytes for each byte of a frame.
"""

from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu
from jaxtyping import Array, Float, UInt8

WINDOW, STRIDE = 8, 4
"""Side of what four neighbouring results of a 6x6 convolution see, which are pooled; pixels from
one such window to the next.
"""
POSITIONS = 4
"""Results that are pooled."""
LINEAR = 1 << POSITIONS
"""A flag beside those of the pooled results: the activation's slope is 1."""
MAX_CHANNELS, MAX_BYTES = 4, 2**31
"""Of the frames of one call, of all runs together; their bytes are counted in 32 bits."""
MAX_SUMS = 1024
"""Programs that add up a gradient, each of which writes what it has found, about 100 kB."""


@dataclass(frozen=True)
class Tiling:
    """How the work is divided on a GPU."""

    rows: int
    """Pooled results that a program computes at once: a power of two, at least 16."""
    blocks: int
    """How often it does so."""
    num_warps: int
    num_stages: int


@dataclass(frozen=True)
class Stage:
    """What a convolution stage is, apart from its numbers."""

    slope: float
    forward: Tiling = Tiling(rows=128, blocks=1, num_warps=8, num_stages=1)
    backward: Tiling = Tiling(rows=64, blocks=16, num_warps=8, num_stages=1)
    interpret: bool = False
    """Compute what the kernels would, on any device and slowly."""


def fits(shape: tuple[int, ...]) -> bool:
    """Whether frames of this shape, (n, height, width, channels), are ones that it can take."""
    n, height, width, channels = shape
    return (
        height % STRIDE == width % STRIDE == 0
        and channels <= MAX_CHANNELS
        and n * height * width * channels < MAX_BYTES
    )


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def convolution_stage(
    frames: UInt8[Array, "n height width channels"],
    kernel: Float[Array, "6 6 channels filters"],
    bias: Float[Array, " filters"],
    stage: Stage,
) -> Float[Array, "n rows columns filters"]:
    """Convolve frames / 255 with stride 2, max-pool 2x2, add the bias, apply LeakyReLU.

    Numbers are rounded to bfloat16 where `networks.ConvolutionStage` rounds them: frames / 255, the
    sums of products (which are float32), these plus the bias, and the activation. Ties share the
    gradient. Its sums are float32 throughout; frames have none.
    """
    return _convolve(frames, kernel, bias, stage, differentiated=False)[0]


def _convolve(
    frames: Array, kernel: Array, bias: Array, stage: Stage, *, differentiated: bool
) -> list[Array]:
    """The results and, if they are to be differentiated, a byte for each that says to which of the
    pooled four its gradient goes.
    """
    n, rows, columns = _results(frames.shape)
    total, filters = n * rows * columns, kernel.shape[-1]
    matrices, tiling = _matrices(kernel, jnp.bfloat16), stage.forward
    dtypes = (jnp.bfloat16, jnp.uint8) if differentiated else (jnp.bfloat16,)
    call = pl.pallas_call(
        partial(_forward_kernel, shape=frames.shape, stage=stage),
        grid=(pl.cdiv(total, tiling.rows * tiling.blocks),),
        in_specs=[pl.BlockSpec()] * (2 + len(matrices)),
        out_specs=[pl.BlockSpec()] * len(dtypes),
        out_shape=[jax.ShapeDtypeStruct((total, filters), dtype) for dtype in dtypes],
        compiler_params=plgpu.CompilerParams(tiling.num_warps, tiling.num_stages),
        interpret=stage.interpret,
        name="convolution_stage",
    )
    found = call(frames.reshape(-1), bias.astype(jnp.bfloat16), *matrices)
    return [x.reshape(n, rows, columns, filters) for x in found]


def _forward(frames: Array, kernel: Array, bias: Array, stage: Stage) -> tuple[Array, Any]:
    out, routes = _convolve(frames, kernel, bias, stage, differentiated=True)
    return out, (frames, kernel, routes)


def _backward(stage: Stage, kept: tuple[Array, ...], gradient: Array) -> tuple[Any, ...]:
    frames, kernel, routes = kept
    n, rows, columns = _results(frames.shape)
    total, filters = n * rows * columns, kernel.shape[-1]
    spread, tiling = partial(_matrices, dtype=jnp.float32), stage.backward
    shapes = [(filters,), *(matrix.shape for matrix in jax.eval_shape(spread, kernel))]
    blocks = max(tiling.blocks, pl.cdiv(total, tiling.rows * MAX_SUMS))
    programs = pl.cdiv(total, tiling.rows * blocks)
    call = pl.pallas_call(
        partial(_backward_kernel, shape=frames.shape, stage=stage, blocks=blocks),
        grid=(programs,),
        in_specs=[pl.BlockSpec()] * 3,
        out_specs=[pl.BlockSpec((None, *shape), partial(_place, len(shape))) for shape in shapes],
        out_shape=[jax.ShapeDtypeStruct((programs, *shape), jnp.float32) for shape in shapes],
        compiler_params=plgpu.CompilerParams(tiling.num_warps, tiling.num_stages),
        interpret=stage.interpret,
        name="convolution_stage_gradient",
    )
    flat = [x.reshape(total, filters) for x in (gradient, routes)]
    bias_gradient, *sums = (x.sum(0) for x in call(frames.reshape(-1), *flat))
    return None, *jax.linear_transpose(spread, kernel)(tuple(sums)), bias_gradient


convolution_stage.defvjp(_forward, _backward)


def _place(axes: int, program: Any) -> tuple[Any, ...]:
    """Where a program writes its sums, which have so many axes."""
    return (program, *(0,) * axes)


def _results(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Number of frames, and rows and columns of what becomes of each."""
    n, height, width, _ = shape
    return n, height // STRIDE - 1, width // STRIDE - 1


def _parts(channels: int) -> list[tuple[int, int]]:
    """A window's line as (start, size) in bytes: Triton's arrays have powers of two as sizes."""
    parts, start = [], 0
    for size in (32, 16, 8):
        if WINDOW * channels - start >= size:
            parts.append((start, size))
            start += size
    return parts


def _matrices(kernel: Array, dtype: Any) -> tuple[Array, ...]:
    """A matrix for each of `_parts`, from that part of all lines of a window to what it adds to the
    four results. They hold zeros for what a result does not see.
    """
    channels, filters = kernel.shape[2:]
    shifted = [
        jnp.pad(kernel, ((i, 2 - i), (j, 2 - j), (0, 0), (0, 0))) for i in (0, 2) for j in (0, 2)
    ]
    matrix = jnp.stack(shifted, axis=3).astype(dtype)
    matrix = matrix.reshape(WINDOW, WINDOW * channels, POSITIONS * filters)
    return tuple(
        matrix[:, start : start + size].reshape(WINDOW * size, POSITIONS * filters)
        for start, size in _parts(channels)
    )


def _patches(frames_ref: Any, row: Array, shape: tuple[int, ...]) -> list[Array]:
    """Each of `_parts` of the windows of some results, in [0, 1]. Of rows beyond the last, its."""
    n, rows, columns = _results(shape)
    _, height, width, channels = shape
    line = width * channels
    row = jnp.minimum(row, n * rows * columns - 1).astype(jnp.uint32)
    above, column = jax.lax.div(row, jnp.uint32(columns)), jax.lax.rem(row, jnp.uint32(columns))
    frame, above = jax.lax.div(above, jnp.uint32(rows)), jax.lax.rem(above, jnp.uint32(rows))
    corner = frame * (height * line) + above * (STRIDE * line) + column * (STRIDE * channels)
    corner = corner.astype(jnp.int32)[:, None, None]
    lines = (jnp.arange(WINDOW) * line)[None, :, None]
    patches = []
    for start, size in _parts(channels):
        # Neighbours in memory are neighbours on the last axis: four at once are one load.
        pixels = frames_ref[corner + (lines + jnp.arange(start, start + size)[None, None])]
        # For all 256 values this rounds to what a division by 255 rounds to.
        x = (pixels.astype(jnp.float32) * jnp.float32(1 / 255)).astype(jnp.bfloat16)
        patches.append(x.reshape(len(row), WINDOW * size))
    return patches


def _product(x: Array, y: Array, axis: int) -> Array:
    """Sums over this axis of x and the first one of y, in float32."""
    contracted = (((axis,), (0,)), ((), ()))
    return jax.lax.dot_general(x, y, contracted, preferred_element_type=jnp.float32)


def _rounded(x: Array, stage: Stage) -> Array:
    """Float32 numbers that bfloat16 can hold."""
    if stage.interpret:  # XLA takes the liberty to leave out a conversion with its inverse
        return jax.lax.reduce_precision(x, 8, 7)
    return x.astype(jnp.bfloat16).astype(jnp.float32)


def _slope(stage: Stage) -> np.float32:
    """As bfloat16 holds it."""
    return np.float32(np.asarray(stage.slope, jnp.bfloat16).item())


def _forward_kernel(
    frames_ref: Any, bias_ref: Any, *refs: Any, shape: tuple[int, ...], stage: Stage
) -> None:
    tiling, parts = stage.forward, len(_parts(shape[-1]))
    matrices, (out_ref, *routes_ref) = [ref[...] for ref in refs[:parts]], refs[parts:]
    total, filters = out_ref.shape
    bias = bias_ref[...].astype(jnp.float32)[None]
    first = pl.program_id(0) * tiling.blocks

    def block(index: Any, nothing: tuple[()]) -> tuple[()]:
        row = (first + index) * tiling.rows + jnp.arange(tiling.rows)
        products = map(partial(_product, axis=1), _patches(frames_ref, row, shape), matrices)
        y = _rounded(reduce(jnp.add, products), stage).reshape(tiling.rows, POSITIONS, filters)
        most = y.max(1)
        z = _rounded(most + bias, stage)
        place = row[:, None], jnp.arange(filters)[None]
        inside = jnp.broadcast_to(row[:, None] < total, z.shape)
        out = jnp.where(z >= 0, z, _slope(stage) * z)
        plgpu.store(out_ref.at[place], out.astype(jnp.bfloat16), mask=inside)
        if routes_ref:
            flags = jnp.left_shift(1, jnp.arange(POSITIONS))[None, :, None]
            routes = jnp.where(y == most[:, None], flags, 0).sum(1) + jnp.where(z >= 0, LINEAR, 0)
            plgpu.store(routes_ref[0].at[place], routes.astype(jnp.uint8), mask=inside)
        return nothing

    if tiling.blocks == 1:
        block(0, ())
    else:
        jax.lax.fori_loop(0, tiling.blocks, block, ())


def _backward_kernel(
    frames_ref: Any,
    gradient_ref: Any,
    routes_ref: Any,
    *sum_refs: Any,
    shape: tuple[int, ...],
    stage: Stage,
    blocks: int,
) -> None:
    tiling = stage.backward
    total, filters = gradient_ref.shape
    first = pl.program_id(0) * blocks

    def block(index: Any, sums: tuple[Array, ...]) -> tuple[Array, ...]:
        bias_sum, *matrix_sums = sums
        row = (first + index) * tiling.rows + jnp.arange(tiling.rows)
        place = jnp.minimum(row, total - 1)[:, None], jnp.arange(filters)[None]
        given = plgpu.load(gradient_ref.at[place]).astype(jnp.float32)
        given = jnp.where(row[:, None] < total, given, jnp.float32(0))
        routes = plgpu.load(routes_ref.at[place]).astype(jnp.int32)
        given = jnp.where(routes >= LINEAR, given, _rounded(_slope(stage) * given, stage))
        number = sum((routes >> position & 1 for position in range(1, POSITIONS)), routes & 1)
        share = (given / number.astype(jnp.float32))[:, None]
        flags = jnp.left_shift(1, jnp.arange(POSITIONS))[None, :, None]
        shares = jnp.where((routes[:, None] & flags) != 0, share, jnp.float32(0))
        shares = shares.astype(jnp.bfloat16).reshape(tiling.rows, POSITIONS * filters)
        patches = _patches(frames_ref, row, shape)
        added = (
            old + _product(x, shares, axis=0) for old, x in zip(matrix_sums, patches, strict=True)
        )
        return bias_sum + given, *added

    shapes = [(tiling.rows, filters), *(ref.shape for ref in sum_refs[1:])]
    zeros = tuple(jnp.zeros(shape, jnp.float32) for shape in shapes)
    bias_sum, *matrix_sums = jax.lax.fori_loop(0, blocks, block, zeros)
    for ref, value in zip(sum_refs, (bias_sum.sum(0), *matrix_sums), strict=True):
        ref[...] = value
