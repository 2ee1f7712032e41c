"""The search for settings: `windvane tune`.

`space` says what is searched, `study` holds the trials and shares them among processes, `workers`
tells which processes live, `batch` trains configurations together, `tune` is the loop, `confirm`
trains the best ones on fresh seeds, `report` and `figures` show the outcome, and `cluster` runs it
all on Ray. Optuna is imported where it is needed and nowhere else.
"""
