"""What `run` and `bisect` are asked for: on the command line, or by a recorded failure."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from torch.export import ExportedProgram

from fxpasses.cli.errors import Misuse
from fxpasses.cli.files import load_inputs, load_program
from fxpasses.listeners import load_reproducer
from fxpasses.pipeline import Pipeline


@dataclass(frozen=True)
class Request:
    """A program, what to run on it, and how to check it."""

    program: ExportedProgram
    pipeline: Pipeline
    verify: str
    args: tuple[Any, ...] | None
    kwargs: Mapping[str, Any] | None


def request_of(source: Path, text: str | None, verify: str, inputs: Path | None) -> Request:
    """The request that `source`, a .pt2 file or a recorded failure, and the options make.

    Raises:
        Misuse: a bad file, or options that do not go together.
        PassError: a bad text.
    """
    return _recorded(source, text) or _asked(source, text, verify, inputs)


def _recorded(source: Path, text: str | None) -> Request | None:
    """The run that a `Reproducer` recorded in `source`, if it is such an archive."""
    if not zipfile.is_zipfile(source):
        return None
    with zipfile.ZipFile(source) as archive:
        if "run.json" not in archive.namelist():
            return None
    failure = load_reproducer(source)
    click.echo(f"recorded: {failure.error}", err=True)
    pipeline = Pipeline.parse(text) if text else failure.passes()
    return Request(failure.program, pipeline, failure.verify, failure.args, failure.kwargs)


def _asked(source: Path, text: str | None, verify: str, inputs: Path | None) -> Request:
    pipeline = Pipeline.parse(text or "default")  # a bad text is refused before a large file
    if inputs and verify != "numeric":
        raise Misuse("--inputs goes with --verify numeric")
    given = load_inputs(inputs) if inputs else None
    args, kwargs = (given.args, given.kwargs) if given else (None, None)
    return Request(load_program(source), pipeline, verify, args, kwargs)
