"""One file that replays a failed run.

    pipeline.run(program, listeners=[Reproducer("failure.zip")])

    $ fxpasses run failure.zip

The archive is written when a pass raises or a check after it fails, and holds the program as it
was handed in, the pipeline's text, the level of checks, the numeric inputs, the versions and the
error.
"""

from __future__ import annotations

import io
import json
import platform
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.export import ExportedProgram

from fxpasses.errors import InvalidProgram
from fxpasses.events import Listener
from fxpasses.files import replacing

if TYPE_CHECKING:
    from fxpasses.fixpoint import Item
    from fxpasses.program import Program
    from fxpasses.verify import Inputs

_FORMAT = 1


@dataclass(frozen=True)
class Failure:
    """A failed run, as read back: run `pipeline` on `program` with these settings."""

    program: ExportedProgram
    pipeline: str
    verify: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    error: str
    versions: dict[str, str]


class Reproducer(Listener):
    """Writes `path`, a .zip, when the run fails; leaves nothing when it does not.

    A bare graph module has no file format, so only runs on exported programs are recorded.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._program: Program | None = None
        self._pipeline = self._verify = ""
        self._inputs: Inputs = ((), {})

    def begin(self, program: Program, items: Sequence[Item], inputs: Inputs, verify: str) -> None:
        self._program, self._inputs, self._verify = program, inputs, verify
        self._pipeline = ",".join(map(str, items))

    def failed(self, error: Exception) -> None:
        if not isinstance(self._program, ExportedProgram):
            return
        settings = {
            "format": _FORMAT,
            "pipeline": self._pipeline,
            "verify": self._verify,
            "error": f"{type(error).__name__}: {error}",
            "versions": {"torch": torch.__version__, "python": platform.python_version()},
        }
        with replacing(self.path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
            archive.writestr("run.json", json.dumps(settings, indent=2))
            archive.writestr("program.pt2", _bytes(torch.export.save, self._program))
            archive.writestr("inputs.pt", _bytes(torch.save, self._inputs))


def load_reproducer(path: str | Path) -> Failure:
    """Read what a `Reproducer` wrote.

    Raises:
        InvalidProgram: the file is no such archive, or one of a later format.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            settings = json.loads(archive.read("run.json"))
            program, inputs = archive.read("program.pt2"), archive.read("inputs.pt")
    except (KeyError, ValueError, zipfile.BadZipFile) as error:
        raise InvalidProgram(f"{path} is no recorded failure: {error}") from error
    if settings.pop("format", None) != _FORMAT:
        raise InvalidProgram(f"{path} has another format than {_FORMAT}; update fxpasses")
    args, kwargs = torch.load(io.BytesIO(inputs), weights_only=True)
    return Failure(torch.export.load(io.BytesIO(program)), args=args, kwargs=kwargs, **settings)


def _bytes(save: Any, value: Any) -> bytes:
    buffer = io.BytesIO()
    save(value, buffer)
    return buffer.getvalue()
