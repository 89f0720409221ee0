"""The backend's commands: `fxpasses lower`, `fxpasses exec`, `fxpasses demo`.

    fxpasses lower model.pt2 -o model.pte
    fxpasses exec model.pte --inputs inputs.pt --calls 3

The package registers them under the entry point `fxpasses.commands`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import torch
from torch.utils._pytree import tree_leaves

import backend
from backend.errors import AccessFailed, BackendError, InvalidArgument, InvalidProgram
from fxpasses.cli.console import print_remarks, print_reports, working
from fxpasses.cli.errors import Failure, Misuse
from fxpasses.cli.files import INPUT, OUTPUT, load_inputs, load_program
from fxpasses.printer import type_text

_WRONG_USE = (AccessFailed, InvalidArgument, InvalidProgram)
_DEVICE = click.Choice(["cpu", "cuda"])
_SHOWN = 6


@contextmanager
def reporting() -> Iterator[None]:
    """Turn the backend's errors into the command line's."""
    try:
        yield
    except BackendError as error:
        kind = Misuse if isinstance(error, _WRONG_USE) else Failure
        raise kind(str(error)) from error


@click.command()
@click.argument("source", metavar="IN.pt2", type=INPUT)
@click.option("-o", "--output", metavar="M.pte", type=OUTPUT, required=True, help="What to write.")
@click.option("-p", "--pipeline", help="Its text; cpu or cuda, as the device is.")
@click.option("--device", type=_DEVICE, help="Where it will run; the GPU where there is one.")
@reporting()
def lower(source: Path, output: Path, pipeline: str | None, device: str | None) -> None:
    """Compile a program saved by torch.export into an ExecuTorch file."""
    program = load_program(source)
    with working("compiling"):
        lowered = backend.lower(program, pipeline, device)
    lowered.save(output)
    click.echo(f"pipeline: {lowered.pipeline}")
    for method in lowered.methods:
        print_reports(lowered.reports[method])
        print_remarks(lowered.remarks[method])
    click.echo(f"wrote {output}: {output.stat().st_size:,} bytes for {lowered.device}")


@click.command("exec")
@click.argument("source", metavar="M.pte", type=INPUT)
@click.option("--inputs", metavar="IN.pt", type=INPUT, required=True, help="Saved by torch.save.")
@click.option("--calls", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--method", default="forward", show_default=True, help="Which one to call.")
@reporting()
def execute(source: Path, inputs: Path, calls: int, method: str) -> None:
    """Call a method of a lowered program; its state lives from call to call."""
    given = load_inputs(inputs)
    with backend.load(source) as program:
        run = program[method]
        for call in range(1, calls + 1):
            for place, value in enumerate(tree_leaves(run(*given.args, **given.kwargs))):
                click.echo(f"call {call} output {place}: {summary(value)}")


def summary(value: Any) -> str:
    """Type and first elements of an output: `f32[2, 3] 0.5, 1, -2, ...`."""
    if not isinstance(value, torch.Tensor):
        return str(value)
    first = ", ".join(f"{element:.6g}" for element in value.flatten()[:_SHOWN].tolist())
    return f"{type_text(value)} {first}{', ...' if value.numel() > _SHOWN else ''}"


@click.command()
@click.option(
    "--output",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    default="demo-output",
    show_default=True,
    help="Where to write the graphs, the report and the program.",
)
@click.option("--device", type=_DEVICE, help="The GPU where there is one.")
@reporting()
def demo(output: Path, device: str | None) -> None:
    """Take SmolVLM's vision embeddings from export to a checked .pte."""
    from backend.demo import show

    output.mkdir(parents=True, exist_ok=True)
    if not show(output, device):
        raise Failure("the lowered program differs from eager, or still reads counts")
