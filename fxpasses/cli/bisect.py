"""`fxpasses bisect`: the first rewrite that breaks a program."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import click

from fxpasses.bisect import Check, Culprit
from fxpasses.bisect import bisect as search
from fxpasses.cli.console import working
from fxpasses.cli.errors import Failure, Misuse, one_line
from fxpasses.cli.files import INPUT, save_program
from fxpasses.cli.request import request_of
from fxpasses.printer import text_diff
from fxpasses.program import Program

_NOT_RUN = (126, 127)  # what a shell exits with when a command is not there, or is no program


@click.command()
@click.argument("source", metavar="IN.pt2", type=INPUT)
@click.option("-p", "--pipeline", "text", help="Its text.  [default: default]")
@click.option("--inputs", metavar="IN.pt", type=INPUT, help="Inputs to compare outputs on.")
@click.option(
    "--check",
    metavar="CMD",
    help="A program is good when `CMD FILE.pt2` exits with 0. Without it, a good program equals "
    "IN.pt2 bit for bit.",
)
def bisect(source: Path, text: str | None, inputs: Path | None, check: str | None) -> None:
    """Find the first rewrite that breaks a program, in log2(rewrites) runs and a few more.

    IN.pt2 may also be a FAILURE.zip that `fxpasses run --reproducer` wrote.
    """
    with working("bisecting"):
        request = request_of(source, text, "numeric", inputs)
        asked = _command(check) if check else None
        culprit = search(request.program, request.pipeline, request.args, request.kwargs, asked)
    if culprit is None:
        click.echo("no rewrite breaks the program")
        return
    _show(culprit)
    why = f": {one_line(culprit.error)}" if culprit.error else ""
    raise Failure(f"{culprit.pass_name} breaks the program at rewrite {culprit.number}{why}")


def _command(command: str) -> Check:
    """Whether the command, given the file of a program, exits with 0."""

    def check(program: Program) -> bool:
        with tempfile.TemporaryDirectory(prefix="fxpasses-bisect-") as directory:
            path = Path(directory) / "program.pt2"
            save_program(program, path)
            run = subprocess.run(f'{command} "{path}"', shell=True, check=False)
        if run.returncode in _NOT_RUN:
            raise Misuse(f"--check {command!r} cannot be run: the shell says {run.returncode}")
        return run.returncode == 0

    return check


def _show(culprit: Culprit) -> None:
    click.echo(f"{culprit} ({culprit.runs} runs)")
    click.echo(text_diff(culprit.before, culprit.after))
