"""Run folders: training from the outside, with records, checkpoints, resuming and results."""
