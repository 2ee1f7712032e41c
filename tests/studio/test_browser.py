"""The page in a real browser: what people see and do."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windvane
from tests.runs.small import small
from tests.studio.browser import Page, browser_path, chromium, drag, served
from windvane.runs.runner import train

pytestmark = pytest.mark.skipif(browser_path() is None, reason="there is no Chromium or Chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The page with the package's own policies."""
    with served() as url:
        yield url


@pytest.fixture
def page(browser: Any, url: str) -> Iterator[Page]:
    page = Page(browser, url)
    yield page
    page.close()
    assert page.complaints == []


def corners(page: Page) -> tuple[tuple[float, float], ...]:
    """Where the triangle's corners are in the window: of ore 1, ore 2 and fuel."""
    box = page.tab.locator(".triangle").first.bounding_box()
    left, right = box["x"], box["x"] + box["width"]
    top, bottom = box["y"], box["y"] + box["height"]
    # What lies outside is clamped to the triangle.
    return (left, bottom), (right, bottom), ((left + right) / 2, top)


def point(page: Page) -> tuple[float, float]:
    box = page["weights-point"].bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def weights_of(page: Page) -> list[float]:
    """The percentages that the page shows."""
    text = page["weights-text"].inner_text()
    return [float(part.split("%")[0].split()[-1]) for part in text.split("%")[:-1] for _ in (0,)]


def test_the_page_opens_without_a_complaint(page: Page) -> None:
    assert "Windvane studio" in page.tab.title()
    assert page["stage"].is_visible()
    assert page["weights-control"].is_visible()
    assert page["chosen-action"].inner_text() in (
        "mine", "left", "right", "accelerate", "brake", "none",
    )  # fmt: skip
    counts = page.tab.evaluate("() => ({...window.__studio})")
    assert counts["framesDrawn"] > 0
    assert counts["stepsReceived"] > 0
    # The token has left the address.
    assert "token" not in page.tab.url


def test_dragging_from_fuel_to_ore_changes_the_policy(page: Page) -> None:
    ore, _, fuel = corners(page)
    drag(page, point(page), fuel)
    page.until(lambda: weights_of(page)[2] == 100, "the weights are all on fuel")
    spared = page.next("episode", terminated=True)
    while spared["weights"] is None:
        spared = page.next("episode", terminated=True)
    assert spared["returns"][:2] == [0, 0]
    drag(page, point(page), ore)
    page.until(lambda: weights_of(page)[0] == 100, "the weights are all on ore 1")
    loaded = page.next("episode", terminated=True)
    while loaded["weights"] is None:
        loaded = page.next("episode", terminated=True)
    assert loaded["returns"][0] > 0.5
    assert page["episodes"].inner_text()


def test_the_keyboard_moves_the_weights(page: Page) -> None:
    page["weights-point"].focus()
    page.tab.keyboard.press("3")
    page.until(lambda: weights_of(page)[2] == 100, "key 3 goes to the third corner")
    page.tab.keyboard.press("0")
    page.until(lambda: max(weights_of(page)) < 35, "key 0 goes to the centre")
    before = weights_of(page)
    for _ in range(3):
        page.tab.keyboard.press("ArrowUp")
    page.until(lambda: weights_of(page) != before, "an arrow key moves the point")
    assert "%" in page["weights-point"].get_attribute("aria-valuetext")


def test_pause_and_market(page: Page) -> None:
    page["pause"].click()
    page.tab.wait_for_timeout(500)
    count = len(page.messages)
    page.tab.wait_for_timeout(500)
    assert len(page.messages) == count
    page["pause"].click()
    page["market"].select_option("regular")
    page.next("weights", playing="regular")
    moved = page.next("weights", playing="regular")["values"]
    page.until(
        lambda: np.abs(np.asarray(weights_of(page)) / 100 - moved).max() < 0.1, "the point moves"
    )


def test_maps_of_what_it_does_and_of_what_is_optimal(page: Page) -> None:
    page.go("understand")
    for name in ("map-agent", "map-optimal", "map-regret", "front"):
        page[name].wait_for()
    page["map-agent"].locator("svg").first.wait_for()
    # Two pictures, not one shown twice.
    agent, optimal = (picture(page, name) for name in ("map-agent", "map-optimal"))
    assert agent != optimal


def picture(page: Page, name: str) -> bytes:
    return page[name].screenshot()


def test_two_policies_have_two_maps(page: Page) -> None:
    page.go("compare")
    page["compare-summary"].wait_for()
    text = page.until(
        lambda: "%" in (said := page["compare-summary"].inner_text()) and said,
        "the comparison is put in words",
    )
    assert "better" in text
    for name in ("map-a", "map-b", "map-difference"):
        page[name].wait_for()
    assert picture(page, "map-a") != picture(page, "map-b")
    lanes = {page.next("step", lane=lane)["lane"] for lane in (0, 1)}
    assert lanes == {0, 1}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["steer", "understand", "compare"])
def test_a_phone_shows_everything(browser: Any, url: str, view: str, scheme: str) -> None:
    options: dict[str, Any] = {"viewport": {"width": 375, "height": 812}, "color_scheme": scheme}
    page = Page(browser, url, **options)
    page.go(view)
    page.tab.wait_for_timeout(500)
    assert page.tab.evaluate("() => document.documentElement.scrollWidth") <= 375
    assert page.complaints == []
    page.close()


def test_the_theme_can_be_chosen(page: Page) -> None:
    def background() -> str:
        return page.tab.evaluate("() => getComputedStyle(document.body).backgroundColor")

    before = background()
    page["theme"].click()
    page.until(lambda: background() != before, "the background changes")


def test_without_the_link_there_is_a_sentence(browser: Any, url: str) -> None:
    context = browser.new_context()
    tab = context.new_page()
    tab.goto(url.partition("?")[0])
    assert "needs the link" in tab.inner_text("body")
    context.close()


def test_a_run_in_progress_updates_and_is_steered(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "weights.txt").write_text("0.5,0.5\n")
    command = [
        sys.executable, "-m", "windvane", "train", "--preset", "quick-dst", "--width", "16",
        "--steps", "4000000", "--chunk", "400", "--schedule", f"live:{tmp_path / 'weights.txt'}",
        "--out", str(tmp_path / "run"),
    ]  # fmt: skip
    training = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while not (tmp_path / "run/policies/current").is_dir() and time.monotonic() < deadline:
            time.sleep(0.2)
        with served(str(tmp_path)) as url:
            page = Page(browser, url)
            page.go("training")
            page["training-curves"].wait_for()
            first = page["training-step"].inner_text()
            page.until(lambda: page["training-step"].inner_text() != first, "the step moves on")
            slider = page["weights-point"]
            slider.focus()
            for _ in range(5):
                page.tab.keyboard.press("ArrowRight")
            page.until(
                lambda: (tmp_path / "weights.txt").read_text() != "0.5,0.5\n",
                "the file of weights is written",
            )
            written = [float(x) for x in (tmp_path / "weights.txt").read_text().split(",")]
            assert sum(written) == pytest.approx(1)
            assert page.complaints == []
            page.close()
    finally:
        training.send_signal(signal.SIGKILL)
        training.wait()


def test_one_s_own_gymnasium_environment(browser: Any, tmp_path: Path) -> None:
    settings = {"steps": 200, "learning_starts": 50, "chunk": 50, "width": 8, "progress": False}
    out = tmp_path / "served/shop"
    windvane.train("tests.strangers.parts:make_shop", "cn", out=out, **settings)
    with served(str(tmp_path / "served"), "--trust") as url:
        page = Page(browser, url)
        assert page["stage"].is_visible()
        slider = page["weights-point"]
        slider.focus()
        page.tab.keyboard.press("End")
        page.next("step", weights=[0.0, 1.0])
        page.tab.keyboard.press("Home")
        page.next("step", weights=[1.0, 0.0])
        assert page.complaints == []
        page.close()


def test_a_folder_that_changes(browser: Any, tmp_path: Path) -> None:
    served_folder = tmp_path / "served"
    train(small(seeds=(3,)), out=served_folder / "first", progress=False)
    with served(str(served_folder)) as url:
        page = Page(browser, url)
        picker = page["policy-picker"]
        assert picker.locator("option").count() == 1
        shutil.copytree(served_folder / "first", served_folder / "second")
        page.until(lambda: picker.locator("option").count() == 2, "a new run appears")
        shutil.rmtree(served_folder / "second")
        page.until(lambda: picker.locator("option").count() == 1, "and is gone again")
        page.next("step")
        page.close()
