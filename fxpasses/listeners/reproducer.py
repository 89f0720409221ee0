"""One file that replays a failed run.

    pipeline.run(program, listeners=[Reproducer("failure.zip")])

    $ fxpasses run failure.zip

The archive is written when a pass raises or a check after it fails. It holds the program as it was
handed in, the pipeline's text, the guards that were switched off, the level of checks and its
inputs, the versions and the error.
"""

from __future__ import annotations

import io
import json
import logging
import platform
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.export import ExportedProgram

from fxpasses.errors import InvalidProgram
from fxpasses.events import Listener
from fxpasses.files import replacing
from fxpasses.fixpoint import Fixpoint, flatten
from fxpasses.program import fork
from fxpasses.registry import Pass
from fxpasses.rewrite import RewritePass

if TYPE_CHECKING:
    from fxpasses.fixpoint import Item
    from fxpasses.pipeline import Pipeline
    from fxpasses.program import Program
    from fxpasses.verify import Inputs

logger = logging.getLogger(__name__)

_FORMAT = 2


@dataclass(frozen=True)
class Failure:
    """A failed run, as read back: run `passes()` on `program` with these settings.

    Attributes:
        pipeline: the text.
        without: for each pass of it, groups opened, the guards that were switched off.
    """

    program: ExportedProgram
    pipeline: str
    without: list[list[str]]
    verify: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    error: str
    versions: dict[str, str]

    def passes(self) -> Pipeline:
        """The pipeline, with the guards switched off that were.

        Raises:
            PassError: a pass or a guard is not there any more.
        """
        from fxpasses.pipeline import Pipeline  # which announces its events to listeners

        guards = iter(self.without)
        return Pipeline([_weakened(item, guards) for item in Pipeline.parse(self.pipeline).items])


class Reproducer(Listener):
    """Writes `path`, a .zip, when the run fails; leaves nothing when it does not.

    A bare graph module has no file format, so only runs on exported programs are recorded.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._program: Program | None = None
        self._pipeline = self._verify = ""
        self._without: list[list[str]] = []
        self._inputs: Inputs = ((), {})

    def begin(self, program: Program, items: Sequence[Item], inputs: Inputs, verify: str) -> None:
        # A run in place leaves nothing of the program as it was.
        self._program = fork(program)
        self._inputs, self._verify = inputs, verify
        self._pipeline = ",".join(map(str, items))
        self._without = [sorted(getattr(pass_, "skipped", ())) for pass_ in flatten(items)]

    def failed(self, error: Exception) -> None:
        if not isinstance(self._program, ExportedProgram):
            logger.warning("%s is not written: a graph module has no file format", self.path)
            return
        settings = {
            "format": _FORMAT,
            "pipeline": self._pipeline,
            "verify": self._verify,
            "error": f"{type(error).__name__}: {error}",
            "without": self._without,
            "versions": {
                "fxpasses": version("fxpasses"),
                "torch": torch.__version__,
                "python": platform.python_version(),
            },
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
        if settings.pop("format", None) != _FORMAT:
            raise InvalidProgram(f"{path} has another format than {_FORMAT}; update fxpasses")
        args, kwargs = torch.load(io.BytesIO(inputs), weights_only=True)
        return Failure(torch.export.load(io.BytesIO(program)), args=args, kwargs=kwargs, **settings)
    except InvalidProgram:
        raise
    except Exception as error:  # a damaged archive makes its readers raise whatever they do
        raise InvalidProgram(f"{path} is no recorded failure: {error}") from error


def _weakened(item: Item, guards: Iterator[list[str]]) -> Item:
    """`item` without the guards that come next, a list for each of its passes."""
    if isinstance(item, Fixpoint):
        return replace(item, passes=tuple(_without(pass_, next(guards)) for pass_ in item.passes))
    return _without(item, next(guards))


def _without(pass_: Pass, guards: list[str]) -> Pass:
    return pass_.without(*guards) if isinstance(pass_, RewritePass) else pass_


def _bytes(save: Any, value: Any) -> bytes:
    buffer = io.BytesIO()
    save(value, buffer)
    return buffer.getvalue()
