"""Replay buffers: prioritised sampling and rules that decide which transitions are kept.

Nothing here depends on `windvane.envs`, except `experience`.
"""
