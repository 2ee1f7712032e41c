"""Reports about finished runs: summaries, statistics, tables, figures and every form of output."""
