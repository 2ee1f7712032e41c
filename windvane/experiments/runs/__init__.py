"""Running experiments: jobs, processes and clusters, and the store that their runs go into."""
