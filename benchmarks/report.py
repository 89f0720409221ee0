"""The table of a run: processor time, microseconds per node, the ratio to ours of that size."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

HEADINGS = ("work", "who", "nodes", "ms", "us per node", "times ours", "")


@dataclass
class Row:
    """One measurement: the best of its rounds, in seconds."""

    work: str
    who: str
    nodes: int
    seconds: float
    remark: str = ""


def lines(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """The cells of each row, grouped by work, ours first."""
    ours = {(row.work, row.nodes): row.seconds for row in rows if row.who.startswith("fxpasses")}
    works = list(dict.fromkeys(row.work for row in rows))
    for row in sorted(rows, key=lambda row: works.index(row.work)):
        own = ours.get((row.work, row.nodes))
        ratio = "" if own is None else f"{row.seconds / own:.1f}"
        each = f"{row.seconds / row.nodes * 1e6:.2f}"
        nodes, milliseconds = f"{row.nodes:,}", f"{row.seconds * 1e3:.1f}"
        yield row.work, row.who, nodes, milliseconds, each, ratio, row.remark


def show(rows: Sequence[Row]) -> None:
    """Print the table."""
    table = Table(title="processor time, best of the rounds")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in ("work", "who", "") else "right")
    last = ""
    for cells in lines(rows):
        if last and cells[0] != last:
            table.add_section()
        last = cells[0]
        table.add_row(*cells)
    Console(width=120).print(table)


def save(rows: Sequence[Row], folder: Path) -> Path:
    """Write the table as Markdown, one file for each torch version, and return where."""
    torch = version("torch").partition("+")[0]
    cells = [HEADINGS, ("---",) * len(HEADINGS), *lines(rows)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in cells)
    minor = ".".join(torch.split(".")[:2])
    path = folder / f"torch-{minor}.md"
    path.write_text(f"# torch {minor}\n\n{facts()}\n\n{table}\n", encoding="utf-8")
    return path


def facts() -> str:
    """When, with which versions, and on how many cores."""
    today = datetime.now(UTC).date().isoformat()
    names = ("fxpasses", "torch", "executorch")
    versions = ", ".join(f"{name} {version(name).partition('+')[0]}" for name in names)
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    return (
        f"{today}; {versions}; Python {platform.python_version()}; "
        f"{os.cpu_count()} cores ({platform.machine()}), {load:.1f} busy processes per core."
    )
