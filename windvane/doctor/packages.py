"""Required packages and optional extras, as the metadata of the installed Windvane names them."""

from collections.abc import Iterator
from importlib.metadata import (
    Distribution,
    PackageNotFoundError,
    distribution,
    packages_distributions,
)
from typing import Any

from windvane.doctor.finding import Finding
from windvane.version import __version__

NAME = "windvane"
AGAIN = f"pip install --force-reinstall --no-deps {NAME}"


def required_packages() -> Iterator[Finding]:
    """Whether everything that Windvane cannot do without is installed, in a version that will do.

    Also says so where the installed metadata is of another version than the code.
    """
    here = _here()
    if here is None:
        yield Finding(
            "packages", f"{NAME} is imported from a folder and not installed, so that it is not "
            "known what it needs", "note", "pip install . (in that folder)",
        )  # fmt: skip
        return
    if here.version != __version__:
        yield Finding(
            "packages", f"{NAME} {__version__} is imported, and {here.version} is installed: there "
            "are two of them", "note", f"pip install {NAME} anew, or leave the folder of the other",
        )  # fmt: skip
    try:
        needed = _requirements(here)
    except ImportError:
        yield Finding("packages", "packaging is not installed", "problem", f"pip install {NAME}")
        return
    lacking = [what for one in needed for what in _lacking(one)]
    if lacking:
        text = f"of the required packages these are missing: {', '.join(lacking)}"
        yield Finding("packages", text, "problem", f"pip install {NAME}", {"missing": lacking})
        return
    versions = {one.name: distribution(one.name).version for one in needed}
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    yield Finding("packages", f"all required ones are installed: {listed}", facts=versions)


def extras() -> Iterator[Finding]:
    """For each optional extra whether it is installed, and how to install it."""
    here = _here()
    if here is None:
        return
    for extra in here.metadata.get_all("Provides-Extra") or []:
        needed = _requirements(here, extra)
        lacking = sorted({what for one in needed for what in _lacking(one)})
        topic, names = f"extra {extra}", ", ".join(str(one.name) for one in needed)
        if lacking:
            yield Finding(
                topic, f"not installed: {', '.join(lacking)}", "note",
                f'pip install "{NAME}[{extra}]"', {"missing": lacking},
            )  # fmt: skip
        else:
            yield Finding(topic, f"installed: {names}", facts={"missing": []})


def lacking_of_extra(extra: str) -> list[str]:
    """What is missing of an extra."""
    here = _here()
    needed = [] if here is None else _requirements(here, extra)
    return [what for one in needed for what in _lacking(one)]


def modules_of_requirements() -> list[str]:
    """The modules that installed required packages are imported as."""
    here = _here()
    try:
        needed = [] if here is None else _requirements(here)
    except ImportError:
        return ["jax"]
    homes: dict[str, list[str]] = {}
    for module, names in packages_distributions().items():
        for name in names:
            homes.setdefault(_normal(name), []).append(module)
    found = []
    for name in (_normal(one.name) for one in needed):
        modules = [module for module in homes.get(name, []) if not module.startswith("_")]
        if modules:
            # Most packages are called as they are imported; pillow is PIL.
            found.append(name if name in modules else min(modules))
    return found or ["jax"]


def _here() -> Distribution | None:
    """What is installed as Windvane."""
    try:
        return distribution(NAME)
    except PackageNotFoundError:
        return None


def _requirements(found: Distribution, extra: str = "") -> list[Any]:
    """What a package needs on this machine, with an extra only what that adds."""
    from packaging.requirements import Requirement

    needed = []
    for requirement in map(Requirement, found.requires or ()):
        marker = requirement.marker
        always = marker is None or marker.evaluate({"extra": ""})
        if extra:
            wanted = not always and marker is not None and marker.evaluate({"extra": extra})
        else:
            wanted = always
        if wanted:
            needed.append(requirement)
    return needed


def _lacking(requirement: Any, above: frozenset[str] = frozenset()) -> Iterator[str]:
    """What is missing of a requirement and of its own extras, such as those of jax[cuda]."""
    try:
        found = distribution(requirement.name)
    except PackageNotFoundError:
        yield requirement.name
        return
    if not requirement.specifier.contains(found.version, prereleases=True):
        wanted = f"{requirement.name}{requirement.specifier}"
        yield f"{wanted} (installed is {found.version})"
    for extra in requirement.extras:
        key = f"{requirement.name}[{extra}]"
        if key not in above:  # a package may name itself
            for one in _requirements(found, extra):
                yield from _lacking(one, above | {key})


def _normal(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")
