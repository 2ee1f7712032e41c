"""The package's version, the one place that states it; importing this file costs nothing."""

__version__ = "0.1.0"
