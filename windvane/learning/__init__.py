"""The learner: an agent with its networks, optimiser and replay buffer, as three pure functions.

It knows what an environment looks like (`EnvSpec`), never an environment.
"""
