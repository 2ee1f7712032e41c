"""GPU kernels, one file each, for what XLA spends its time on memory with.

All of it is also written in plain JAX, in `networks.py`, which runs wherever a kernel does not, and
which kernels are tested against. Whoever wants a kernel asks here when a program is traced.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import jax

SWITCH = "WINDVANE_KERNELS"
"""An environment variable: with `0` there are no kernels."""


def first_stage(shape: tuple[int, ...], precision: str, slope: float) -> Callable[..., Any] | None:
    """What computes a `ConvolutionStage` of uint8 frames of this shape, (n, height, width,
    channels), from them, its kernel and its bias; None where there is no kernel for that.

    There is none either where several GPUs share the runs, since XLA does not divide a kernel.
    """
    if (
        precision != "bfloat16"
        or os.environ.get(SWITCH) == "0"
        or jax.default_backend() != "gpu"
        or jax.local_device_count() > 1
    ):
        return None
    try:
        from windvane.kernels import convolution
    except ImportError:  # JAX has announced to part with Triton some day
        return None
    if not convolution.fits(shape):
        return None
    return partial(convolution.convolution_stage, stage=convolution.Stage(slope))
