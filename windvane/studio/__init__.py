"""The page of `windvane studio`: drag the weights, and watch the agent follow.

`library` finds policies and runs, `stage` plays episodes, `viewer` talks to one browser, `maps` and
`curves` compute what does not move, `app` puts them behind HTTP, and `server` runs it. What may not
live here: anything that training or evaluation needs.
"""

from windvane.studio.server import serve

__all__ = ["serve"]
