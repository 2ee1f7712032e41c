"""From the episodes of a run to its summary.

What may not live here: files, or anything about several runs.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from windvane.errors import LARGEST_COUNT, InputError
from windvane.experiments.report.summary import POINTS, RunSummary
from windvane.experiments.runs.frames import LARGEST, numbers, to_frame, whole_numbers
from windvane.runs.divergence import check_loss
from windvane.runs.records import TOLERANCE
from windvane.runs.stretches import mean_over_time
from windvane.training.config import TrainConfig


def summarise_run(
    config: TrainConfig,
    records: Mapping[str, np.ndarray] | pl.DataFrame,
    failed: bool,
    provenance: dict[str, Any],
) -> RunSummary:
    """Summarise the records of one run."""
    frame = records if isinstance(records, pl.DataFrame) else to_frame(records)
    check_episodes(frame, config)
    utility = _utility(frame)
    if utility is None:
        utility = pl.Series([math.nan] * len(frame), dtype=pl.Float64)
    episodes = pl.DataFrame(
        {
            "step": frame["step"].cast(pl.Int64),
            "regret": frame["regret"].cast(pl.Float64),
            "utility": utility,
        }
    )
    loss = check_loss(_losses_and_returns(frame), config)
    late = episodes.filter(pl.col("step") > 0.75 * config.steps)
    windows = _windows(episodes, config.steps)
    utility_curve = windows["utility"].fill_null(math.nan).to_numpy()
    return RunSummary(
        config=config,
        failed=failed,
        episodes=len(episodes),
        overall=_mean(episodes["regret"]),
        last=_mean(late["regret"]),
        curve=windows["regret"].cum_sum().to_numpy(),
        provenance=provenance,
        overall_utility=_mean(episodes["utility"]),
        last_utility=_mean(late["utility"]),
        utility_curve=None if np.isnan(utility_curve).all() else utility_curve,
        overall_over_time=_over_time(episodes),
        last_over_time=_over_time(late),
        largest_loss=min(loss.largest, LARGEST),
        loss_limit=min(loss.limit, LARGEST),
    )


def check_episodes(frame: pl.DataFrame, config: TrainConfig) -> None:
    """Check the records of a run: their types, sizes and order, and that they belong to it."""
    steps = whole_numbers(frame, "step", 1, config.steps).cast(pl.Int64)
    if not (steps.diff().drop_nulls() > 0).all():
        raise InputError("the column 'step' must increase from row to row")
    regret = numbers(frame, "regret", allow_nan=True)
    unknown = int(regret.is_nan().sum())
    if 0 < unknown < len(regret):
        raise InputError(f"the column 'regret' is NaN in {unknown} of {len(regret)} rows")
    utility = _utility(frame)
    if utility is None and unknown:
        raise InputError("it has neither a regret nor a utility")
    if utility is not None and "optimal" in frame.columns:
        optimal = numbers(frame, "optimal", allow_nan=True)
        apart = (optimal - utility - regret).abs() / (1 + optimal.abs() + utility.abs())
        if not (apart.is_nan() | (apart <= TOLERANCE)).all() or (unknown == 0) != (
            not optimal.is_nan().any()
        ):
            raise InputError("the column 'regret' must be the optimal value less the utility")
    for name in ("length", "episode"):
        if name in frame.columns:
            whole_numbers(frame, name, 0, LARGEST_COUNT)
    if "seed" in frame.columns:
        seeds = whole_numbers(frame, "seed", 0, LARGEST_COUNT).unique().to_list()
        if seeds not in ([], list(config.seed_numbers)):
            raise InputError(f"the column 'seed' must be {config.seed_numbers[0]}, not {seeds[:3]}")


def _utility(frame: pl.DataFrame) -> pl.Series | None:
    """The scalarised returns; of files without them, from their weights and returns."""
    weights, returns = (_vector(frame, name) for name in ("weights", "return"))
    stated = numbers(frame, "utility") if "utility" in frame.columns else None
    if not weights and not returns:
        return stated
    if len(weights) != len(returns):
        raise InputError(f"it has {len(weights)} columns of weights and {len(returns)} of returns")
    terms = [w * r for w, r in zip(weights, returns, strict=True)]
    earned = pl.DataFrame({str(i): term for i, term in enumerate(terms)}).sum_horizontal()
    if stated is None:
        return earned
    size = pl.DataFrame({str(i): term.abs() for i, term in enumerate(terms)}).sum_horizontal()
    if not ((stated - earned).abs() <= TOLERANCE * (1 + size)).all():
        raise InputError("the column 'utility' must be weights times returns")
    return stated


def _losses_and_returns(frame: pl.DataFrame) -> dict[str, np.ndarray]:
    """What tells whether a run diverged; a loss that is no number tells nothing."""
    names = [name for name in frame.columns if name.startswith("return_")]
    names += [name for name in ("loss",) if name in frame.columns and frame[name].dtype.is_float()]
    return {name: frame[name].to_numpy() for name in names}


def _vector(frame: pl.DataFrame, name: str) -> list[pl.Series]:
    """The columns `name_0`, `name_1` and so on."""
    found = sorted(c for c in frame.columns if re.fullmatch(rf"{name}_\d+", c))
    expected = [f"{name}_{i}" for i in range(len(found))]
    if set(found) != set(expected):
        raise InputError(f"the columns {found} must be numbered from 0 on")
    return [numbers(frame, column) for column in expected]


def _windows(episodes: pl.DataFrame, steps: int) -> pl.DataFrame:
    """The sum of the regrets and the mean utility of the episodes that ended in each window."""
    # The first window whose end, k * steps / POINTS, the episode did not exceed.
    window = (pl.col("step") * POINTS + steps - 1) // steps
    means = episodes.group_by(window=window).agg(
        pl.col("regret").sum(), pl.col("utility").mean()
    )  # fmt: skip
    every = pl.DataFrame({"window": range(1, POINTS + 1)}, schema={"window": pl.Int64})
    return every.join(means, on="window", how="left", maintain_order="left").with_columns(
        pl.col("regret").fill_null(0.0)
    )


def _over_time(episodes: pl.DataFrame) -> float:
    return mean_over_time(episodes["step"].to_numpy(), episodes["regret"].to_numpy())


def _mean(values: pl.Series) -> float:
    mean = values.mean()
    return math.nan if mean is None else float(mean)  # pyright: ignore[reportArgumentType]
