"""Environments: the interface, the paper's two problems, and drivers for episodes."""
