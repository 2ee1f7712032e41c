"""The kernel of the first convolution stage against the stage in plain JAX, without a GPU."""

from typing import Any

import equinox as eqx
import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

from windvane import kernels, networks
from windvane.kernels import convolution
from windvane.kernels.convolution import Stage, Tiling, convolution_stage
from windvane.networks import ConvolutionStage, FrameEncoder

STAGE = Stage(networks.SLOPE, interpret=True)
SMALL = Stage(networks.SLOPE, Tiling(16, 2, 4, 1), Tiling(16, 3, 4, 1), interpret=True)


def plain(frames: Any, kernel: Any, bias: Any, dtype: Any = jnp.bfloat16) -> Any:
    x = jnp.asarray(frames).astype(dtype) / jnp.asarray(255, dtype)
    return ConvolutionStage(jnp.asarray(kernel), jnp.asarray(bias))(x)


def drawn(seed: int, shape: tuple[int, ...], runs: tuple[int, ...] = ()) -> tuple[np.ndarray, ...]:
    """Random frames, a kernel, a bias and a gradient."""
    generator = np.random.default_rng(seed)
    n, height, width, channels = shape
    frames = generator.integers(0, 256, (*runs, *shape)).astype(np.uint8)
    kernel = generator.normal(scale=0.1, size=(*runs, 6, 6, channels, 32)).astype(np.float32)
    bias = generator.normal(scale=0.3, size=(*runs, 32)).astype(np.float32)
    given = generator.normal(size=(*runs, n, height // 4 - 1, width // 4 - 1, 32))
    return frames, kernel, bias, given.astype(jnp.bfloat16)


def results(function: Any, frames: Any, kernel: Any, bias: Any, given: Any) -> tuple[Any, Any, Any]:
    """What a stage makes of frames, and the gradients of its kernel and bias."""
    out, pull = jax.vjp(lambda *parameters: function(frames, *parameters), kernel, bias)
    return out, *pull(jnp.asarray(given, out.dtype))


def kernels_results(stage: Stage, *case: Any) -> tuple[Any, Any, Any]:
    """The same from the kernel, compiled as a whole."""
    program = jax.jit(lambda *case: results(lambda *p: convolution_stage(*p, stage), *case))
    return program(*case)


def close(ours: Any, theirs: Any, share: float) -> bool:
    ours, theirs = (np.asarray(x, np.float64) for x in (ours, theirs))
    return bool(np.linalg.norm(ours - theirs) <= share * np.linalg.norm(theirs))


@pytest.mark.parametrize(
    ("shape", "stage"),
    [
        ((2, 48, 48, 3), STAGE),
        ((3, 12, 20, 3), SMALL),
        ((1, 8, 8, 1), SMALL),
        ((5, 16, 12, 2), SMALL),
        ((2, 12, 16, 4), SMALL),
    ],
)
def test_it_is_the_stage_of_the_network(shape: tuple[int, ...], stage: Stage) -> None:
    case = drawn(0, shape)
    ours = kernels_results(stage, *case)
    theirs = results(plain, *case)
    assert [x.dtype for x in ours] == [jnp.bfloat16, jnp.float32, jnp.float32]
    assert np.mean(np.asarray(ours[0]) == np.asarray(theirs[0])) > 0.99
    assert close(ours[0], theirs[0], 1e-3)
    # Sums of the plain stage's gradient are rounded to bfloat16, the kernel's are not.
    assert close(ours[1], theirs[1], 2e-2)
    assert close(ours[2], theirs[2], 5e-2)


@pytest.mark.parametrize("seed", range(3))
def test_ties_share_the_gradient(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With numbers that bfloat16 holds, all of it is exact. Often several of the four are equal."""
    slope = 2**-6
    monkeypatch.setattr(networks, "SLOPE", slope)
    generator = np.random.default_rng(seed)
    # Patches of one colour, black or white, and a kernel of few numbers.
    frames = 255 * generator.integers(0, 2, (3, 3, 4, 1)).repeat(8, 1).repeat(4, 2)
    kernel = generator.integers(-1, 2, (6, 6, 1, 32)) * (generator.random((6, 6, 1, 32)) < 0.2)
    bias, given = generator.integers(-2, 3, 32), 12 * generator.integers(-2, 3, (3, 5, 3, 32))
    case = (frames.astype(np.uint8), *(np.float32(x) for x in (kernel, bias, given)))
    stage = Stage(slope, SMALL.forward, SMALL.backward, interpret=True)
    ours = kernels_results(stage, *case)
    theirs = results(lambda *p: plain(*p, dtype=jnp.float32), *case)
    for found, expected in zip(ours, theirs, strict=True):
        assert np.array_equal(np.asarray(found, np.float32), expected)
    _, routes = convolution._convolve(*map(jnp.asarray, case[:3]), stage, differentiated=True)
    ties = np.unpackbits(np.asarray(routes)[..., None], axis=-1)[..., -4:].sum(-1)
    assert {1, 2, 4} <= set(np.unique(ties)) <= {1, 2, 3, 4}


def test_frames_of_one_colour_have_ties_everywhere() -> None:
    _, kernel, bias, given = drawn(0, (2, 12, 12, 3))
    frames = np.full((2, 12, 12, 3), 100, np.uint8)
    ours = kernels_results(SMALL, frames, kernel, bias, given)
    assert close(ours[1], results(plain, frames, kernel, bias, given)[1], 2e-2)
    # Each of the four sees the same, so all of the kernel that is on one colour gets the same.
    assert close(ours[1], np.broadcast_to(ours[1][:1, :1, :1], ours[1].shape), 1e-5)


def test_all_pixels_are_rounded_as_a_division_rounds_them() -> None:
    pixels = jnp.arange(256).astype(jnp.uint8)
    divided = pixels.astype(jnp.bfloat16) / jnp.asarray(255, jnp.bfloat16)
    scaled = (pixels.astype(jnp.float32) * jnp.float32(1 / 255)).astype(jnp.bfloat16)
    assert np.array_equal(divided, scaled)


def calls(jaxpr: Any) -> list[tuple[int, ...]]:
    """Grids of all kernels that a program launches."""
    found = []
    for equation in jaxpr.eqns:
        if equation.primitive.name == "pallas_call":
            found.append(equation.params["grid_mapping"].grid)
        else:
            inner = jaxprs_in_params(equation.params)
            found += [grid for one in inner for grid in calls(one)]
    return found


@pytest.mark.parametrize("mapped", [(0, 0, 0, 0), (0, None, None, 0), (None, 0, 0, 0)])
def test_many_runs_are_one_launch(mapped: tuple[int | None, ...]) -> None:
    runs, shape = 3, (2, 12, 16, 3)
    case = [
        x if axis == 0 else x[0]
        for x, axis in zip(drawn(1, shape, (runs,)), mapped, strict=True)
    ]  # fmt: skip

    def one(*case: Any) -> Any:
        return results(lambda *p: convolution_stage(*p, SMALL), *case)

    every = jax.jit(jax.vmap(one, mapped))
    grids = calls(every.trace(*case).jaxpr.jaxpr)
    assert len(grids) == 2
    assert all(len(grid) == 2 and grid[0] == runs for grid in grids)
    found = every(*case)
    for run in range(runs):
        own = (x[run] if axis == 0 else x for x, axis in zip(case, mapped, strict=True))
        for together, alone in zip(found, jax.jit(one)(*own), strict=True):
            assert np.allclose(np.asarray(together[run], np.float32), np.asarray(alone, np.float32))


GPU = jax.sharding.AbstractMesh(
    (1,), ("gpus",), abstract_device=jax.sharding.AbstractDevice("NVIDIA H200", None, "gpu")
)
TRITON = "__gpu$xla.gpu.triton"


# It is JAX's word on what it may do one day; then there are no kernels.
@pytest.mark.filterwarnings("ignore:The Pallas Triton backend:DeprecationWarning")
@pytest.mark.parametrize("runs", [(), (7,)])
@pytest.mark.parametrize("shape", [(8, 48, 48, 3), (8, 84, 84, 1)])
def test_it_is_compiled_for_gpus(shape: tuple[int, ...], runs: tuple[int, ...]) -> None:
    def both(*case: Any) -> Any:
        return results(lambda *p: convolution_stage(*p, Stage(networks.SLOPE)), *case)

    checks = [jax.export.DisabledSafetyCheck.custom_call(TRITON)]
    case = jax.eval_shape(lambda: tuple(map(jnp.asarray, drawn(0, shape, runs))))
    with jax.sharding.use_abstract_mesh(GPU):
        program = jax.jit(jax.vmap(both) if runs else both)
        export = jax.export.export(program, platforms=["cuda"], disabled_checks=checks)(*case)
    assert export.mlir_module().count(TRITON) == 2


def test_only_frames_in_half_precision_on_one_gpu_have_a_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def found(shape: tuple[int, ...] = (2, 48, 48, 3), precision: str = "bfloat16") -> bool:
        return kernels.first_stage(shape, precision, networks.SLOPE) is not None

    monkeypatch.delenv(kernels.SWITCH, raising=False)
    assert found() == (jax.default_backend() == "gpu")
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "local_device_count", lambda: 1)
    assert found()
    assert found((2, 84, 84, 1))
    assert not found(precision="float32")
    assert not any(map(found, [(2, 50, 48, 3), (2, 48, 50, 3), (2, 48, 48, 5)]))
    assert not found((2**20, 48, 48, 3))
    monkeypatch.setenv(kernels.SWITCH, "0")
    assert not found()
    monkeypatch.delenv(kernels.SWITCH)
    monkeypatch.setattr(jax, "local_device_count", lambda: 2)
    assert not found()


def test_encoders_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = FrameEncoder.make(jax.random.key(0), (12, 16, 3), 8, "bfloat16")
    frames = jnp.asarray(drawn(0, (2, 12, 16, 3))[0])
    expected, asked = encoder(frames), []

    def first_stage(*arguments: Any) -> Any:
        asked.append(arguments)
        return lambda *case: convolution_stage(*case, stage=SMALL)

    monkeypatch.setattr(kernels, "first_stage", first_stage)
    assert close(eqx.filter_jit(encoder)(frames), expected, 1e-2)
    assert asked == [((2, 12, 16, 3), "bfloat16", networks.SLOPE)]
