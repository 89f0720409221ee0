"""`fxpasses run`: a pipeline on a saved program, or a recorded failure once more."""

from __future__ import annotations

import json
from pathlib import Path

import click

from fxpasses.cli.console import print_remarks, print_reports, working
from fxpasses.cli.files import INPUT, OUTPUT, save_program
from fxpasses.cli.request import request_of
from fxpasses.errors import PassError
from fxpasses.events import Listener
from fxpasses.files import write_text
from fxpasses.inspect import Inspection, inspect_pipeline
from fxpasses.listeners import Reproducer


@click.command()
@click.argument("source", metavar="IN.pt2", type=INPUT)
@click.option("-p", "--pipeline", "text", help="Its text.  [default: default]")
@click.option("-o", "--output", metavar="OUT.pt2", type=OUTPUT, help="Where to write the program.")
@click.option(
    "--verify",
    type=click.Choice(["off", "structure", "metadata", "numeric"]),
    help="What is checked after each pass.  [default: metadata]",
)
@click.option("--inputs", metavar="IN.pt", type=INPUT, help="Inputs of the numeric check.")
@click.option("--report", metavar="R.html", type=OUTPUT, help="Write the graph before and after.")
@click.option("--remarks", metavar="R.json", type=OUTPUT, help="Write the remarks.")
@click.option(
    "--reproducer",
    metavar="FAILURE.zip",
    type=OUTPUT,
    help="If the run fails, write what runs it again.",
)
def run(
    source: Path,
    text: str | None,
    output: Path | None,
    verify: str | None,
    inputs: Path | None,
    report: Path | None,
    remarks: Path | None,
    reproducer: Path | None,
) -> None:
    """Run a pipeline of passes on a program saved by torch.export.

    IN.pt2 may also be a FAILURE.zip that --reproducer wrote: the failed run is made once more.
    """
    with working(f"reading {source}"):
        request = request_of(source, text, verify or "metadata", inputs)
    listeners: list[Listener] = [Reproducer(reproducer)] if reproducer else []
    try:
        with working("running") as progress:
            inspection = inspect_pipeline(
                request.program,
                request.pipeline,
                verify=verify or request.verify,
                inputs=request.args,
                kwargs=request.kwargs,
                listeners=[progress, *listeners],
            )
    except PassError:
        if reproducer and reproducer.exists():
            click.echo(f"wrote {reproducer}")
        raise
    _show(inspection)
    for path, write in ((output, _save), (report, Inspection.save), (remarks, _save_remarks)):
        if path:
            write(inspection, path)
            click.echo(f"wrote {path}")


def _show(inspection: Inspection) -> None:
    click.echo(f"pipeline: {inspection.pipeline}")
    print_reports(inspection.result.reports)
    print_remarks(inspection.remarks)


def _save(inspection: Inspection, path: Path) -> None:
    save_program(inspection.result.program, path)


def _save_remarks(inspection: Inspection, path: Path) -> None:
    held = [remark.to_dict() for remark in inspection.remarks]
    write_text(path, json.dumps(held, indent=2) + "\n")
