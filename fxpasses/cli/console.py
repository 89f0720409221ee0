"""What commands print: results on stdout, progress on stderr and only to a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fxpasses.events import Listener
from fxpasses.regions import Region
from fxpasses.registry import Pass
from fxpasses.remarks import Remark
from fxpasses.report import PassReport

_STYLES = {"passed": "green", "missed": "yellow"}
_WIDTH_OF_A_PIPE = 160


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """Print rows under headings; numbers stand on the right."""
    rows = [tuple(row) for row in rows]
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for place, name in enumerate(columns):
        numeric = all(isinstance(row[place], int | float) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    _stdout().print(table)


def print_reports(reports: Iterable[PassReport]) -> None:
    """Print the table of passes: region, changed, rewrites, milliseconds, nodes."""
    columns = ("pass", "region", "changed", "rewrites", "ms", "nodes")
    print_table(columns, map(_report_row, reports))


def print_remarks(remarks: Iterable[Remark]) -> None:
    """Print one remark a line."""
    for remark in remarks:
        kind, rest = str(remark).split(" ", 1)
        click.echo(f"{click.style(kind, fg=_STYLES[remark.kind])} {rest}")


@contextmanager
def working(what: str) -> Iterator[Progress]:
    """Show on a terminal that `what` is going on, and which pass is running."""
    with Console(stderr=True).status(what) as status:
        yield Progress(lambda step: status.update(f"{what}: {step}"))


class Progress(Listener):
    """Tells the terminal which pass is running."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.tell = tell

    def before(self, pass_: Pass, region: Region) -> None:
        self.tell(f"{pass_.name} {region.path}")


def _report_row(report: PassReport) -> tuple[object, ...]:
    return (
        report.name,
        report.region or "top",
        "yes" if report.changed else "no",
        report.rewrites,
        report.seconds * 1000,
        f"{report.nodes_before} -> {report.nodes_after}",
    )


def _cell(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _stdout() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH_OF_A_PIPE)
