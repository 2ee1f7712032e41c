"""The paper: its published numbers, the grids of its tables, and the orders that it reports."""
