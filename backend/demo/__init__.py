"""The demo: a real model from export to a .pte that is proved equal to eager.

SmolVLM's vision embeddings write their position ids through a boolean mask: two reads of a count,
and on a GPU two waits, in every call. The default pipeline removes both.

    fxpasses demo --output demo-output
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import torch
from torch.export import ExportedProgram

import backend
from backend.demo.checks import agreement, count_reads
from backend.demo.model import Call, fresh_calls, vision_embeddings
from decomps import decomposition_table
from fxpasses.analysis import host_reads
from fxpasses.cli.console import print_remarks, print_reports, print_table, working
from fxpasses.files import write_text
from fxpasses.inspect import Inspection, inspect_pipeline


def show(output: Path, device: str | None = None) -> bool:
    """Run the demo, write its files into `output`, and say whether all of it held."""
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    with torch.backends.cudnn.flags(allow_tf32=False):  # eager's convolutions in full float32
        return _show(output, device)


def _show(output: Path, device: str) -> bool:
    module = vision_embeddings().to(device)
    calls = list(fresh_calls(device))
    with working("exporting"):
        exported = torch.export.export(module, calls[0])
        program = exported.run_decompositions(decomposition_table(device))
    with working("running the passes"):
        inspection = inspect_pipeline(program, "default")
    _show_passes(inspection)
    reads = _show_reads(inspection, calls[:5])
    path = output / "smolvlm.pte"
    with working("compiling"):
        lowered = backend.lower(exported, inspection.pipeline, device)
    lowered.save(path)
    reads += len(host_reads(lowered.results["forward"].program))
    equal = _show_calls(path, module, calls)
    _write(inspection, output)
    return equal and reads == 0


def _show_passes(inspection: Inspection) -> None:
    click.echo(f"pipeline: {inspection.pipeline}\n")
    print_reports(inspection.result.reports)
    click.echo()
    print_remarks(inspection.remarks)
    click.echo()


def _show_reads(inspection: Inspection, calls: Sequence[Call]) -> int:
    """Print the count reads before and after the passes; return how many are left."""
    programs = {"before": inspection.program, "after": inspection.result.program}
    rows = [
        (name, len(host_reads(program)), count_reads(program.module(), calls))
        for name, program in programs.items()
        if isinstance(program, ExportedProgram)
    ]
    print_table(("count reads", "per call, by analysis", f"counted in {len(calls)} calls"), rows)
    click.echo()
    _, analysed, counted = rows[-1]
    return analysed + counted


def _show_calls(path: Path, module: torch.nn.Module, calls: Sequence[Call]) -> bool:
    """Call the lowered program and eager on the same inputs; return whether all agree."""
    with backend.load(path) as program:
        found = [agreement(module, call, program["forward"](*call)) for call in calls]
    for number, agreed in enumerate(found, start=1):
        click.echo(f"call {number}: {agreed}")
    click.echo()
    return all(agreed.equal for agreed in found)


def _write(inspection: Inspection, output: Path) -> None:
    write_text(output / "before.txt", inspection.before + "\n")
    write_text(output / "after.txt", inspection.after + "\n")
    inspection.save(output / "report.html")
    for name in ("before.txt", "after.txt", "report.html", "smolvlm.pte"):
        path = output / name
        click.echo(f"wrote {path} ({path.stat().st_size:,} bytes)")
