"""The graph after each pass that changed it, as numbered files.

    pipeline.run(program, listeners=[Dumps("dumps")])

    dumps/000-before.txt
    dumps/001-replace-masked-copy-with-where.txt
    dumps/002-replace-masked-copy-with-where.true_graph_0.txt

A pass that changes nothing writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fxpasses.events import Listener
from fxpasses.files import write_text
from fxpasses.printer import program_text, region_text
from fxpasses.regions import Region
from fxpasses.registry import Pass
from fxpasses.report import PassReport

if TYPE_CHECKING:
    from fxpasses.fixpoint import Item
    from fxpasses.program import Program
    from fxpasses.verify import Inputs


class Dumps(Listener):
    """Writes graph texts into `directory`, which is made when it is not there."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self._count = 0
        self._region: Region | None = None

    def begin(self, program: Program, items: Sequence[Item], inputs: Inputs, verify: str) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._write("before", program_text(program))

    def before(self, pass_: Pass, region: Region) -> None:
        self._region = region

    def after(self, report: PassReport) -> None:
        if report.changed and self._region is not None:
            name = ".".join(filter(None, (report.name, report.region)))
            self._write(name, region_text(self._region.module))

    def _write(self, name: str, text: str) -> None:
        write_text(self.directory / f"{self._count:03}-{name}.txt", text + "\n")
        self._count += 1
