"""The paper's agents: one file each over one shared core."""
