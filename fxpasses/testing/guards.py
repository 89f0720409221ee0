"""Is each guard of each pass held up by a test?

    python -m fxpasses.testing.guards tests/passes

switches one guard off after another, runs the tests, and prints which of them fail. A guard that
no test misses is not tested: the exit code is 1. One guard at a time, for a closer look:

    pytest -p fxpasses.testing.guards --without remove-count-checks/count_checks tests/passes
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import click
import pytest
from rich.console import Console
from rich.table import Table

from fxpasses.errors import InvalidPass
from fxpasses.registry import registry
from fxpasses.rewrite import RewritePass

KILLED, SURVIVED = pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.OK
FAILED = re.compile(r"^FAILED (\S+)", re.MULTILINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option; pytest calls this."""
    parser.addoption("--without", metavar="PASS/GUARD", help="switch this guard off")


def pytest_configure(config: pytest.Config) -> None:
    """Switch off the guard that the option names; pytest calls this."""
    if named := config.getoption("--without"):
        switch_off(named)


def switch_off(named: str) -> None:
    """Let a registered pass do without a guard, `PASS/GUARD`, in this process, for good.

    Raises:
        InvalidPass: there is no such guard.
    """
    name, _, guard = named.partition("/")
    subject = registry.get(name)
    if not issubclass(subject, RewritePass) or guard not in subject.guards():
        raise InvalidPass(f"no guard {named!r}; there are: {', '.join(guards())}")
    subject.skipped |= {guard}


def guards() -> list[str]:
    """Every guard of every registered pass, as `PASS/GUARD`."""
    passes = ((name, registry.get(name)) for name in registry.names())
    return [f"{n}/{g}" for n, p in passes if issubclass(p, RewritePass) for g in p.guards()]


def missed_by(arguments: Sequence[str], guard: str) -> list[str]:
    """The tests that fail without a guard, the first three.

    Raises:
        click.ClickException: the tests did not run.
    """
    command = [sys.executable, "-m", "pytest", "-p", "fxpasses.testing.guards", "-q", "--tb=no"]
    command += ["--maxfail=3", "--without", guard, *arguments]
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "1000"}
    )
    if run.returncode not in (KILLED, SURVIVED):
        raise click.ClickException(f"pytest did not run the tests:\n{run.stdout}{run.stderr}")
    return FAILED.findall(run.stdout)


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--jobs", default=1, show_default=True, help="How many guards at a time.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def main(jobs: int, arguments: tuple[str, ...]) -> None:
    """Run pytest with ARGUMENTS once for each guard; exit with 1 if no test misses one."""
    table = Table(title="Guards")
    for column in ("guard", "tests that fail without it"):
        table.add_column(column, overflow="fold")
    names = guards()
    with ThreadPoolExecutor(jobs) as pool:
        found = dict(zip(names, pool.map(partial(missed_by, arguments), names), strict=True))
    for name, tests in found.items():
        table.add_row(name, "\n".join(tests) or "[red]none[/]")
    Console().print(table)
    sys.exit(not all(found.values()))


if __name__ == "__main__":
    main()
