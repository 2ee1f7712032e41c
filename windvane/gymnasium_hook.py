"""Registers the Gymnasium ids when Gymnasium is imported, before or after this package.

Importing Gymnasium and NumPy takes longer than printing a page of help, which needs neither.
"""

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_NAME = "gymnasium"


def register_with_gymnasium() -> None:
    """Register the ids now if Gymnasium is imported, else when it is."""
    if sys.modules.get(_NAME) is not None:
        _register()
    elif not any(isinstance(finder, _Hook) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Hook())


class _Hook(MetaPathFinder):
    """Finds Gymnasium as the other finders do, and registers the ids after its import."""

    def find_spec(
        self, fullname: str, path: Any, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of Gymnasium, of which importing does one thing more; None of others."""
        if fullname != _NAME:
            return None
        others = (finder for finder in sys.meta_path if not isinstance(finder, _Hook))
        specs = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        loader: Any = None if spec is None else spec.loader
        if loader is not None:
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, _Hook)]
                _register()

            loader.exec_module = exec_module
        return spec


def _register() -> None:
    from windvane.registration import register

    register()
