"""A PyTorch agent with Windvane's diverse replay (DER).

    pip install torch && python examples/torch_replay.py [--episodes 600]

A small DQN learns, for every action, a vector of values conditioned on weights, and plays Deep Sea
Treasure with new weights in every episode. Regret is how far an episode's discounted and weighted
return stayed below the optimum. The lines between "replay" marks are all that Windvane's replay
asks of an agent; the rest is any PyTorch program.
"""

import argparse
import sys
import time

import gymnasium
import numpy as np

import windvane

try:
    import torch
    from torch import nn
except ImportError:
    sys.exit("This example needs PyTorch, which is not installed: pip install torch")

# --- replay ---
from windvane.replay.diverse import DiverseReplay
from windvane.replay.host import HostReplay
from windvane.replay.signature import ReturnSignature

# --- end ---

GAMMA, BATCH, INTERVAL, SEED = 0.95, 64, 2, 0
SIDE, ACTIONS, OBJECTIVES = 12, 4, 2
SCALE = 0.1
"""Treasures are worth up to 100: networks learn smaller numbers sooner."""


def encode(observation: np.ndarray) -> np.ndarray:
    """Row and column, each as a one-hot vector."""
    return np.eye(SIDE, dtype=np.float32)[observation].reshape(-1)


class Agent:
    """Double DQN with vectors for values; weights are an input, and choose among the vectors."""

    def __init__(self):
        self.online, self.target = self._network(), self._network()
        self.target.load_state_dict(self.online.state_dict())
        self.optimiser = torch.optim.Adam(self.online.parameters(), 1e-3)
        self.updates = 0

    def act(self, observation: np.ndarray, weights: np.ndarray) -> int:
        """The action that is best for the weights."""
        seen, wanted = torch.from_numpy(observation)[None], torch.from_numpy(weights)[None]
        with torch.no_grad():
            return int((self._values(self.online, seen, wanted) @ wanted[0]).argmax())

    def learn(self, batch: dict[str, np.ndarray], weights: np.ndarray) -> np.ndarray:
        """One step of gradient descent; returns the absolute errors, one per transition."""
        parts = {name: torch.tensor(part) for name, part in batch.items()}
        wanted = torch.from_numpy(weights)
        rows = torch.arange(len(wanted))
        with torch.no_grad():
            after = self._values(self.online, parts["next_observation"], wanted)
            best = torch.einsum("nao,no->na", after, wanted).argmax(1)
            future = self._values(self.target, parts["next_observation"], wanted)[rows, best]
            goal = SCALE * parts["reward"] + GAMMA * ~parts["terminated"][:, None] * future
        error = (
            goal - self._values(self.online, parts["observation"], wanted)[rows, parts["action"]]
        )
        self.optimiser.zero_grad()
        nn.functional.huber_loss(error, torch.zeros_like(error)).backward()
        self.optimiser.step()
        self.updates += 1
        if self.updates % 200 == 0:
            self.target.load_state_dict(self.online.state_dict())
        return (error.detach() * wanted).sum(1).abs().numpy()

    def _network(self) -> nn.Module:
        layers = nn.Linear(2 * SIDE + OBJECTIVES, 128), nn.Linear(128, ACTIONS * OBJECTIVES)
        return nn.Sequential(layers[0], nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), layers[1])

    def _values(self, network: nn.Module, seen: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return network(torch.cat([seen, wanted], 1)).view(-1, ACTIONS, OBJECTIVES)


def train(episodes: int) -> np.ndarray:
    """The regret of every episode."""
    rng = np.random.default_rng(SEED)
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # more would only wait for each other with networks this small
    env, sea = gymnasium.make("windvane/DeepSeaTreasure-v0"), windvane.DeepSeaTreasure()
    agent, regrets, steps = Agent(), [], 0

    # --- replay: half the newest transitions, half trajectories with different returns ---
    example = {
        "observation": np.zeros(2 * SIDE, np.float32), "action": 0,
        "reward": np.zeros(OBJECTIVES, np.float32),
        "next_observation": np.zeros(2 * SIDE, np.float32), "terminated": False,
    }  # fmt: skip
    signature = ReturnSignature(OBJECTIVES, GAMMA, reward=lambda transition: transition["reward"])
    replay = HostReplay(DiverseReplay(10_000, signature), example, seed=SEED)
    # --- end ---

    for episode in range(episodes):
        weights = rng.dirichlet(np.ones(OBJECTIVES)).astype(np.float32)
        chance = max(0.05, 1 - episode / (0.5 * episodes))
        observation = encode(env.reset(seed=SEED if episode == 0 else None)[0])
        earned, discount, over = np.zeros(OBJECTIVES), 1.0, False
        while not over:
            exploring = rng.random() < chance
            action = int(rng.integers(ACTIONS)) if exploring else agent.act(observation, weights)
            seen, reward, terminated, truncated, _ = env.step(action)
            after, over = encode(seen), terminated or truncated

            # --- replay: truncation ends a trajectory as well, but is not `terminated` ---
            values = (observation, action, reward, after, terminated)
            replay.add(dict(zip(example, values, strict=True)), ended=over)
            # --- end ---

            earned, discount = earned + discount * reward, discount * GAMMA
            observation, steps = after, steps + 1
            if steps >= 500 and steps % INTERVAL == 0:
                # Half the batch is for these weights, half for any, so that none is forgotten.
                wanted = rng.dirichlet(np.ones(OBJECTIVES), BATCH).astype(np.float32)
                wanted[: BATCH // 2] = weights

                # --- replay ---
                batch, indices, _ = replay.sample(BATCH, newest=INTERVAL)
                errors = agent.learn(batch, wanted)
                replay.update_priorities(indices, errors)
                # --- end ---
        regrets.append(windvane.regret(sea, GAMMA, weights, earned))
    return np.asarray(regrets)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=600)
    arguments = parser.parse_args()
    began = time.perf_counter()
    regrets = train(arguments.episodes)
    few = max(arguments.episodes // 8, 1)
    print(f"{len(regrets)} episodes in {time.perf_counter() - began:.0f} s")
    print(f"mean regret of the first {few}: {regrets[:few].mean():.2f}")
    print(f"mean regret of the last {few}:  {regrets[-few:].mean():.2f}")


if __name__ == "__main__":
    main()
