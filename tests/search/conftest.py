"""What tests of the search share: Optuna is an extra, and is there where tests run."""

import pytest

pytest.importorskip("optuna")
