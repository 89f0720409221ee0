"""The `measure` fixture, and the table at the end; a whole run is kept in `results/`."""

from pathlib import Path

import pytest

from benchmarks.measure import Measure
from benchmarks.report import Row, save, show

RESULTS = Path(__file__).parent / "results"
ROWS = pytest.StashKey[list[Row]]()


def pytest_configure(config):
    config.stash[ROWS] = []


@pytest.fixture
def measure(benchmark, pytestconfig):
    return Measure(benchmark, pytestconfig.stash[ROWS])


def pytest_terminal_summary(exitstatus, config):
    rows = config.stash[ROWS]
    show(rows)
    if exitstatus == pytest.ExitCode.OK and not config.option.keyword:
        print("saved in", save(rows, RESULTS).relative_to(Path.cwd()))
