"""Experiments: running grids (`runs`), the paper's numbers (`paper`), reports (`report`)."""
