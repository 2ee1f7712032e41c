"""Training: the fused loop, records of episodes, checkpoints."""
