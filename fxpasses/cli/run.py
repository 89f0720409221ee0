"""`fxpasses run`: a pipeline on a saved program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from fxpasses.cli.console import print_remarks, print_reports, working
from fxpasses.cli.errors import Misuse
from fxpasses.cli.files import INPUT, OUTPUT, load_inputs, load_program, save_program
from fxpasses.files import write_text
from fxpasses.inspect import Inspection, inspect_pipeline
from fxpasses.pipeline import Pipeline


@click.command()
@click.argument("source", metavar="IN.pt2", type=INPUT)
@click.option("-p", "--pipeline", "text", default="default", show_default=True, help="Its text.")
@click.option("-o", "--output", metavar="OUT.pt2", type=OUTPUT, help="Where to write the program.")
@click.option(
    "--verify",
    default="metadata",
    show_default=True,
    type=click.Choice(["off", "structure", "metadata", "numeric"]),
    help="What is checked after each pass.",
)
@click.option("--inputs", metavar="IN.pt", type=INPUT, help="Inputs of the numeric check.")
@click.option("--report", metavar="R.html", type=OUTPUT, help="Write the graph before and after.")
@click.option("--remarks", metavar="R.json", type=OUTPUT, help="Write the remarks.")
def run(
    source: Path,
    text: str,
    output: Path | None,
    verify: str,
    inputs: Path | None,
    report: Path | None,
    remarks: Path | None,
) -> None:
    """Run a pipeline of passes on a program saved by torch.export."""
    pipeline = Pipeline.parse(text)
    given = _numeric_inputs(inputs, verify)
    with working(f"reading {source}"):
        program = load_program(source)
    with working("running") as progress:
        inspection = inspect_pipeline(
            program, pipeline, verify=verify, inputs=given, listeners=[progress]
        )
    _show(inspection)
    for path, write in ((output, _save), (report, Inspection.save), (remarks, _save_remarks)):
        if path:
            write(inspection, path)
            click.echo(f"wrote {path}")


def _numeric_inputs(path: Path | None, verify: str) -> Sequence[Any] | None:
    if path is None:
        return None
    if verify != "numeric":
        raise Misuse("--inputs goes with --verify numeric")
    inputs = load_inputs(path)
    if inputs.kwargs:
        raise Misuse(f"{path} holds keyword arguments; the numeric check takes positional ones")
    return inputs.args


def _show(inspection: Inspection) -> None:
    click.echo(f"pipeline: {inspection.pipeline}")
    print_reports(inspection.result.reports)
    print_remarks(inspection.remarks)


def _save(inspection: Inspection, path: Path) -> None:
    save_program(inspection.result.program, path)


def _save_remarks(inspection: Inspection, path: Path) -> None:
    held = [remark.to_dict() for remark in inspection.remarks]
    write_text(path, json.dumps(held, indent=2) + "\n")
