"""The files that commands read and write: .pt2 programs, .pt inputs, Python files with passes.

`INPUT` and `OUTPUT` are the types of path arguments: a bad path is refused before work begins.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import click
import torch
from torch.export import ExportedProgram

from fxpasses.cli.errors import Misuse, one_line
from fxpasses.files import replacing
from fxpasses.program import Program


class OutputPath(click.Path):
    """A path that can be written: its directory exists and takes new files."""

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not os.access(path.parent, os.W_OK | os.X_OK) or not path.parent.is_dir():
            self.fail(f"{path.parent} is no directory that can be written", param, ctx)
        return path


INPUT = click.Path(exists=True, dir_okay=False, path_type=Path)
OUTPUT = OutputPath(dir_okay=False, writable=True, path_type=Path)


class Inputs(NamedTuple):
    """The arguments of one call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def load_program(path: Path) -> ExportedProgram:
    """Read what `torch.export.save` wrote.

    Raises:
        Misuse: the file is no .pt2, or is damaged.
    """
    if not _is_archive(path):
        raise Misuse(f"{path} is no .pt2 file, or is cut off; torch.export.save writes one")
    try:
        return torch.export.load(path)
    except Exception as error:  # torch raises whatever its parsers raise on damaged parts
        raise Misuse(f"{path} is damaged: torch.export.load fails on it") from error


def save_program(program: Program, path: Path) -> None:
    """Write a .pt2 file, whole or not at all.

    Raises:
        Misuse: `program` is a bare graph module, for which there is no such file.
    """
    if not isinstance(program, ExportedProgram):
        raise Misuse(f"a {type(program).__name__} cannot be saved as a .pt2 file")
    with replacing(path) as temporary:
        torch.export.save(program, temporary)


def load_inputs(path: Path) -> Inputs:
    """Read the arguments of a call: a saved tuple, or a dict with "args" and "kwargs".

    Raises:
        Misuse: the file is no torch.save file, or holds something else.
    """
    try:
        held = torch.load(path, weights_only=True)
    except (RuntimeError, EOFError, pickle.UnpicklingError, zipfile.BadZipFile) as error:
        raise Misuse(f"{path} cannot be read: write it with torch.save((x, y), path)") from error
    if isinstance(held, dict) and held.keys() <= {"args", "kwargs"}:
        args, kwargs = held.get("args", ()), held.get("kwargs", {})
        if isinstance(args, tuple | list) and isinstance(kwargs, dict):
            return Inputs(tuple(args), kwargs)
        raise Misuse(f'{path}: "args" must be a tuple and "kwargs" a dict')
    if isinstance(held, tuple | list):
        return Inputs(tuple(held), {})
    raise Misuse(
        f"{path} holds a {type(held).__name__}; save a tuple of inputs, "
        'or a dict with "args" and "kwargs"'
    )


def load_plugin(path: Path) -> None:
    """Import a Python file for the passes that it registers.

    Raises:
        Misuse: the file is no Python file, or raises when imported.
    """
    name = f"fxpasses_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Misuse(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up by name
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the file is the user's: it may raise anything
        raise Misuse(f"{path}: {type(error).__name__}: {one_line(error)}") from error


def _is_archive(path: Path) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/archive_format") for name in archive.namelist())
