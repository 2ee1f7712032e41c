"""The pictures of windvane studio in the docs: each view, light, dark and on a phone.

    python -m scripts.studio_pictures    # or make studio-pictures: two minutes; needs Chromium

The view of training shows CN with DER on Deep Sea Treasure, trained here for 10,000 steps.
"""

import tempfile
from pathlib import Path
from typing import Any

import windvane
from tests.studio.browser import Page, chromium, served
from windvane.training.config import TrainConfig

OUT = Path("docs/studio")
SIZES = {
    "light": ("light", 1280, 860),
    "dark": ("dark", 1280, 860),
    "phone": ("light", 375, 812),
    "phone-dark": ("dark", 375, 812),
}
VIEWS = {"understand": 2_500, "compare": 4_000, "steer": 6_500}
"""Milliseconds that each is looked at; the first has the map computed that the others show, too."""


def photograph(browser: Any, url: str, view: str, wait: int) -> None:
    """One view in all sizes and colours."""
    for name, (scheme, width, height) in SIZES.items():
        size = {"width": width, "height": height}
        page = Page(browser, url, viewport=size, color_scheme=scheme)
        page.go(view)
        ready = {"understand": "front", "compare": "map-difference", "training": "training-curves"}
        if view in ready:
            page[ready[view]].wait_for()
        elif page["weights-point"].get_attribute("type") is None:
            page["weights-point"].focus()
            for _ in range(4):
                page.tab.keyboard.press("ArrowDown")
            page["weights-point"].blur()
        page.tab.wait_for_timeout(wait)
        page.tab.screenshot(path=str(OUT / f"{view}-{name}.png"))
        page.close()


def main() -> None:
    """Take all pictures."""
    OUT.mkdir(exist_ok=True)
    with chromium() as browser:
        with served() as url:
            for view, wait in VIEWS.items():
                photograph(browser, url, view, wait)
        with tempfile.TemporaryDirectory() as folder:
            config = TrainConfig.preset("quick-dst", steps=10_000, seeds=4)
            windvane.train(config, out=Path(folder) / "cn-der")
            with served(folder) as url:
                photograph(browser, url, "training", 1_500)
    for path in sorted(OUT.glob("*.png")):
        print(f"{path} ({path.stat().st_size // 1024} kB)")


if __name__ == "__main__":
    main()
