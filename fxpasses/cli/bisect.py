"""`fxpasses bisect`: the first rewrite that breaks a program."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import click

from fxpasses.bisect import Check, Culprit
from fxpasses.bisect import bisect as search
from fxpasses.cli.console import working
from fxpasses.cli.errors import Failure
from fxpasses.cli.files import INPUT, load_inputs, load_program, save_program
from fxpasses.pipeline import Pipeline
from fxpasses.printer import text_diff
from fxpasses.program import Program


@click.command()
@click.argument("source", metavar="IN.pt2", type=INPUT)
@click.option("-p", "--pipeline", "text", default="default", show_default=True, help="Its text.")
@click.option("--inputs", metavar="IN.pt", type=INPUT, help="Inputs to compare outputs on.")
@click.option(
    "--check",
    metavar="CMD",
    help="A program is good when `CMD FILE.pt2` exits with 0. Without it, a good program equals "
    "IN.pt2 bit for bit.",
)
def bisect(source: Path, text: str, inputs: Path | None, check: str | None) -> None:
    """Find the first rewrite that breaks a program, in log2(rewrites) runs and a few more."""
    pipeline, program = Pipeline.parse(text), load_program(source)
    given = load_inputs(inputs) if inputs else None
    args, kwargs = (given.args, given.kwargs) if given else (None, None)
    with working("bisecting"):
        culprit = search(program, pipeline, args, kwargs, _command(check) if check else None)
    if culprit is None:
        click.echo("no rewrite breaks the program")
        return
    _show(culprit)
    raise Failure(f"{culprit.pass_name} breaks the program at rewrite {culprit.number}")


def _command(command: str) -> Check:
    """Whether the command, given the file of a program, exits with 0."""

    def check(program: Program) -> bool:
        with tempfile.TemporaryDirectory(prefix="fxpasses-bisect-") as directory:
            path = Path(directory) / "program.pt2"
            save_program(program, path)
            run = subprocess.run(f'{command} "{path}"', shell=True, check=False)
        return run.returncode == 0

    return check


def _show(culprit: Culprit) -> None:
    click.echo(f"{culprit} ({culprit.runs} runs)")
    click.echo(text_diff(culprit.before, culprit.after))
