"""The examples in docstrings, in the README and in the recipes are true."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys

import pytest
import tamis
from conftest import ROOT

HERE = ROOT / "bindings/python"
# The page on Spark is run by test_spark.py, on its session.
PAGES = [ROOT / "README.md", HERE / "README.md", HERE / "docs/polars.md", HERE / "docs/duckdb.md"]


def test_docstrings():
    tested = 0
    for module in (tamis, importlib.import_module("tamis.polars")):
        failed, attempted = doctest.testmod(module)
        assert failed == 0
        tested += attempted
    for native in (tamis.Filter, tamis.Iblt):
        finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
        for test in finder.find(native, native.__name__, globs={}):
            runner.run(test)
        assert runner.failures == 0
        tested += runner.tries
    assert tested > 40


def test_everything_public_has_a_docstring():
    for name in tamis.__all__:
        thing = getattr(tamis, name)
        if name == "__version__":
            continue
        assert thing.__doc__, name
        if isinstance(thing, type):
            for method, value in vars(thing).items():
                if not method.startswith("_") and callable(value):
                    assert value.__doc__, f"{name}.{method}"


def blocks(page):
    """The code of a page: blocks that begin with ```python, one script each page."""
    inside, code = False, []
    for line in page.read_text().splitlines():
        if line.startswith("```"):
            inside = line == "```python"
            continue
        code.append(line if inside else "")
    return "\n".join(code)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_pages(page, tmp_path):
    code = blocks(page)
    assert code.strip()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
