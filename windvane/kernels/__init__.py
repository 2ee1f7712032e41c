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


OLDEST = 8.0
"""Compute capability that Triton asks for: NVIDIA's GPUs from the A100 on."""


def first_stage(shape: tuple[int, ...], precision: str, slope: float) -> Callable[..., Any] | None:
    """What computes a `ConvolutionStage` of uint8 frames of this shape, (n, height, width,
    channels), from them, its kernel and its bias; None where there is no kernel for that.
    """
    if precision != "bfloat16" or os.environ.get(SWITCH) == "0" or not _gpu():
        return None
    try:
        from windvane.kernels import convolution
    except ImportError:  # JAX has announced to part with Triton some day
        return None
    if not convolution.fits(shape):
        return None
    return partial(convolution.convolution_stage, stage=convolution.Stage(slope))


def _gpu() -> bool:
    """Whether there is one GPU that kernels are for. Over several, XLA does not divide a kernel."""
    devices = jax.local_devices()
    capability = str(getattr(devices[0], "compute_capability", ""))
    # AMD's are names.
    return len(devices) == 1 and capability[:1].isdigit() and float(capability) >= OLDEST
