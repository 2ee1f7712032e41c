"""Fronts: measures beside numbers computed by hand."""

import jaxtyping
import numpy as np
import pytest

from windvane.errors import InputError
from windvane.fronts import (
    expected_utility,
    hypervolume,
    igd,
    igd_plus,
    maximum_utility_loss,
    reference_point,
    sparsity,
    undominated,
)

FRONT = [[1.0, 3.0], [2.0, 2.0], [4.0, 0.0]]
WEIGHTS = np.asarray([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])


def test_undominated_rows_are_named_once() -> None:
    rows = [[1.0, 3.0], [1.0, 2.0], [2.0, 2.0], [2.0, 2.0], [4.0, 0.0], [0.0, 2.9]]
    assert undominated(rows).tolist() == [0, 2, 4]
    assert undominated([[1.0, 2.0]]).tolist() == [0]


def test_hypervolume() -> None:
    # Rectangles from (0, -1), left to right: 1 x 4, 1 x 3, 2 x 1.
    assert hypervolume(FRONT, [0.0, -1.0]) == pytest.approx(4 + 3 + 2)
    # A point that does not exceed the reference adds nothing.
    assert hypervolume([*FRONT, [-1.0, 9.0]], [0.0, -1.0]) == pytest.approx(9)
    assert hypervolume([[2.0, 3.0, 4.0]], [1.0, 1.0, 1.0]) == pytest.approx(1 * 2 * 3)


def test_the_default_reference_lies_below_everything() -> None:
    point = reference_point(FRONT, [[-1.0, 1.0]])
    np.testing.assert_allclose(point, [-1 - 0.1 * 5, 0 - 0.1 * 3])
    np.testing.assert_allclose(reference_point([[2.0, 5.0]]), [1.9, 4.9])


def test_distances_to_a_known_front() -> None:
    known = [[1.0, 3.0], [4.0, 4.0]]
    # From (1, 3): 0. From (4, 4): sqrt(8) to (2, 2), sqrt(10) and 4 to the others.
    assert igd(FRONT, known) == pytest.approx(np.sqrt(8) / 2)
    # What is better than the known value counts as no distance, in `igd_plus` alone.
    assert igd([[2.0, 3.0]], [[1.0, 3.0]]) == pytest.approx(1)
    assert igd_plus([[2.0, 3.0]], [[1.0, 3.0]]) == pytest.approx(0)


def test_utilities() -> None:
    assert expected_utility(FRONT, WEIGHTS) == pytest.approx((4 + 2 + 3) / 3)
    known = [[1.0, 3.5], [4.5, 1.5]]
    # Best known: 4.5, 3, 3.5; reached: 4, 2, 3.
    assert maximum_utility_loss(FRONT, known, WEIGHTS) == pytest.approx(1)


def test_sparsity() -> None:
    # First objective 1, 2, 4: 1 + 4; second 0, 2, 3: 4 + 1; two gaps.
    assert sparsity(FRONT) == pytest.approx(5)
    assert sparsity([[1.0, 3.0]]) == 0


@pytest.mark.parametrize("values", [[], [1.0, 2.0], [[np.nan, 1.0]], [[1.0], [1.0, 2.0]], "front"])
def test_what_is_no_front_is_refused(values: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(InputError, match="rows of finite numbers"):
        sparsity(values)
    with pytest.raises(InputError, match="rows of finite numbers"):
        hypervolume(values, [0.0, 0.0])


def test_a_reference_point_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(InputError, match="must be 2 numbers, one per objective, not 3"):
        hypervolume(FRONT, [0.0, 0.0, 0.0])
