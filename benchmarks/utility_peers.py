"""morl-baselines' contenders of `benchmarks.time_to_utility`.

Their own `train` trains them, unchanged and without logging; the environment they get counts steps
and looks at the clock. It has no end of its own, so that they may use all their minutes. Needs
what `make bench-training` installs, and its Python.
"""

import contextlib
import os
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch
from morl_baselines.common.evaluation import seed_everything
from morl_baselines.common.weights import equally_spaced_weights
from morl_baselines.multi_policy.envelope.envelope import Envelope
from morl_baselines.multi_policy.gpi_pd.gpi_pd import GPILS

from benchmarks.host_peers import EXAMPLE
from benchmarks.utility_games import GAMES, Act, make
from benchmarks.utility_looks import Looks

# From examples/gpi_pd_minecart.py of morl-baselines v1.3.0, run as GPI-LS: algo="gpi-ls" and
# gpi_pd=False, which is what `GPILS` sets. It leaves gradient_updates to its user; here it is 1.
GPI_LS: dict[str, Any] = {
    "num_nets": 2,
    "max_grad_norm": None,
    "learning_rate": 3e-4,
    "batch_size": 128,
    "net_arch": [256] * 4,
    "buffer_size": 200_000,
    "initial_epsilon": 1.0,
    "final_epsilon": 0.05,
    "epsilon_decay_steps": 50_000,
    "learning_starts": 100,
    "alpha_per": 0.6,
    "min_priority": 0.01,
    "per": False,
    "use_gpi": True,
    "gradient_updates": 1,
    "target_net_update_freq": 200,
    "tau": 1,
}
GPI_LS_TRAIN = {"weight_selection_algo": "gpi-ls", "timesteps_per_iter": 10_000}
SETTINGS = {"morl-envelope": EXAMPLE, "morl-gpi-ls": GPI_LS}
FOREVER = 10**9
"""Steps to train for. No schedule depends on them."""
CHECKED = 300
"""Observations for which batched actions are compared with the agent's own."""


class _TimeIsOverError(Exception):
    """Ends a training from within its environment."""


class _Watched(gymnasium.Wrapper):
    """Calls something before every step."""

    def __init__(self, env: gymnasium.Env, watch: Callable[[], None]):
        super().__init__(env)
        self.watch = watch

    def step(self, action: Any) -> Any:
        self.watch()
        return self.env.step(action)


def envelope_act(agent: Envelope) -> Act:
    """What `Envelope.eval` does, for a batch."""

    @torch.no_grad()
    def act(observations: np.ndarray, weights: np.ndarray) -> np.ndarray:
        w = torch.as_tensor(weights).float()
        values = agent.q_net(torch.as_tensor(observations).float(), w)
        return torch.einsum("br,bar->ba", w, values).argmax(1).numpy()

    return act


def gpi_act(agent: GPILS) -> Act:
    """What `GPILS.eval` does, for a batch: the best action that the first network knows for any
    weight vector of the support.
    """

    @torch.no_grad()
    def act(observations: np.ndarray, weights: np.ndarray) -> np.ndarray:
        support = torch.stack(agent.weight_support)
        w, seen = torch.as_tensor(weights).float(), torch.as_tensor(observations).float()
        net = agent.q_nets[0]
        net.eval()
        values = net(seen.repeat_interleave(len(support), 0), support.repeat(len(seen), 1)).view(
            len(seen), len(support), agent.action_dim, -1
        )
        net.train()
        best = torch.einsum("br,bpar->bpa", w, values).max(1).values
        return best.argmax(1).numpy()

    return act


def check_act(agent: Any, act: Act, env: gymnasium.Env) -> float:
    """The share of random observations where the batch and the agent's own `eval` agree."""
    rng = np.random.default_rng(0)
    seen, _ = env.reset(seed=0)
    rows = []
    for _ in range(CHECKED):
        rows.append(seen)
        seen, _, ended, truncated, _ = env.step(int(rng.integers(env.action_space.n)))  # type: ignore[attr-defined]
        seen = env.reset()[0] if ended or truncated else seen
    weights = rng.dirichlet(np.ones(agent.reward_dim), CHECKED)
    own = [agent.eval(row, w) for row, w in zip(rows, weights, strict=True)]
    return float(np.mean(act(np.stack(rows), weights) == own))


def train(looks: Looks, agent_name: str, seed: int) -> dict[str, Any]:
    """Train until the time is over or there is nothing left to learn."""
    torch.set_num_threads(1)
    env, other = (_Watched(make(looks.env), lambda: None) for _ in range(2))
    # `train` asks for these. They are cached, so that it finds them.
    equally_spaced_weights(int(env.unwrapped.reward_space.shape[0]), n=100)  # type: ignore[attr-defined]
    seed_everything(seed)
    chosen = SETTINGS[agent_name] | {
        "gamma": GAMES[looks.env].gamma, "log": False, "seed": seed, "device": "cpu",
    }  # fmt: skip
    agent = Envelope(env, **chosen) if agent_name == "morl-envelope" else GPILS(env, **chosen)
    if isinstance(agent, GPILS) and not agent.per:
        # In v1.3.0 this buffer returns indices, too, and `update` without priorities takes none: as
        # published it stops with an error.
        with_indices = agent.replay_buffer.sample
        agent.replay_buffer.sample = lambda *a, **k: with_indices(*a, **k)[:5]
    act = envelope_act(agent) if isinstance(agent, Envelope) else gpi_act(agent)

    def watch() -> None:
        if looks.over:
            raise _TimeIsOverError("minutes")
        if looks.due and agent.global_step:
            looks.look(act, agent.global_step)
            if looks.enough:
                raise _TimeIsOverError("enough")

    env.watch = other.watch = watch
    env.reset(seed=seed)
    env.action_space.seed(seed)
    why = "training"
    looks.clock.start()
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        try:
            if isinstance(agent, Envelope):
                agent.train(total_timesteps=FOREVER)
            else:
                nothing = np.zeros(agent.reward_dim)  # of the hypervolume, which is only logged
                agent.train(FOREVER, other, nothing, checkpoints=False, **GPI_LS_TRAIN)
        except _TimeIsOverError as over:
            why = str(over)
    looks.look(act, agent.global_step, why)
    agree = check_act(agent, act, make(looks.env))
    if agree < 0.99:
        raise AssertionError(f"batched actions differ from the agent's own: {agree:.1%} agree")
    return chosen | {"batched_actions_agree": agree}
