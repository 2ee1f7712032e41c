"""Programs that make what the repository ships: coverage sets and reports."""
