"""Replay: storage with prioritised sampling, and the rules of what to keep."""
