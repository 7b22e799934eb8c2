"""What several tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import tamis
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[3]
KINDS = {kind.name: kind for kind in tamis.kinds()}

settings.register_profile(
    "tamis",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("tamis")


@pytest.fixture(scope="session")
def program() -> Path:
    """The program that cargo built."""
    path = Path(os.environ.get("TAMIS_PROGRAM", ROOT / "target/debug/tamis"))
    assert path.exists(), f"{path}: run `cargo build -p tamis-cli`, or set TAMIS_PROGRAM"
    return path


def pytest_generate_tests(metafunc):
    """A test that takes `kind` runs for every kind there is, unless it says for which."""
    marks = metafunc.definition.iter_markers("parametrize")
    if "kind" in metafunc.fixturenames and all(mark.args[0] != "kind" for mark in marks):
        metafunc.parametrize("kind", list(KINDS))
