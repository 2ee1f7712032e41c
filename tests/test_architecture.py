"""The layers of the package: each imports only from those below it, and there are no cycles."""

import ast
from pathlib import Path

import windvane

ROOT = Path(windvane.__file__).parent

LAYERS = (
    {"version", "gymnasium_hook"},
    {"errors", "deprecation"},
    {
        "files",
        "machine",
        "progress",
        "registry",
        "fingerprint",
        "packing",
        "batching",
        "archives",
        "figure_style",
    },
    {"schedule_registry"},
    {"policy_files", "kernels", "video"},
    {"spec", "weights", "transition", "linear_support"},
    {"schedules"},
    {"live"},
    {"envs", "registration"},
    {"oracle"},
    {"replay", "networks"},
    {"agents"},
    {"learning"},
    {"training"},
    {"policy"},
    {"evaluation", "fronts"},
    {"rendering", "plots", "tracking"},
    {"runs"},
    {"experiments", "studio", "doctor"},
    {"search"},
    {"cli"},
    {"__main__"},
)
"""From the bottom to the top: a module or package imports from lower layers alone."""


def level(name: str) -> int:
    return next(number for number, layer in enumerate(LAYERS) if name in layer)


def part(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """The parts of the package that a file imports when it is imported itself."""
    tree = ast.parse(path.read_text())
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    checking = [
        n
        for n in ast.walk(tree)
        if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)
    ]
    later = {id(child) for block in (*functions, *checking) for child in ast.walk(block)}
    found = set()
    for node in ast.walk(tree):
        if id(node) in later:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "windvane":
                names = [f"windvane.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("windvane.")}
    return found


def files() -> list[Path]:
    return [path for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]


def test_every_part_has_a_layer() -> None:
    parts = {part(path) for path in files()}
    assert parts == set().union(*LAYERS)


def test_imports_point_downwards() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files()
        for name in imports(path)
        if name != part(path) and level(name) >= level(part(path))
    ]
    assert not wrong


def test_agents_networks_and_replay_know_no_environment() -> None:
    closed = ("agents", "networks", "replay", "learning")
    reaching = {
        str(path.relative_to(ROOT))
        for path in files()
        if part(path) in closed and "envs" in imports(path)
    }
    # The codec of native states is the one bridge.
    assert reaching == {"learning/state_codec.py"}
