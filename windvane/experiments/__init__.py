"""The paper's experiments: what it published, to hold results against."""
