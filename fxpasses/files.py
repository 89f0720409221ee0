"""Writing files whole or not at all.

    with replacing(path) as temporary:
        torch.export.save(program, temporary)

The block writes a temporary file in the same directory; leaving it without an error renames the
file to `path` in one step. A reader never sees half a file, and an error leaves the old one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path with the name of `path`, which becomes `path` at the end.

    Raises:
        OSError: the directory is missing or cannot be written; it names `path`.
    """
    path = Path(path)
    with _blaming(path):
        holder = tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent)
    with holder as directory:
        temporary = Path(directory) / path.name
        yield temporary
        with _blaming(path):
            temporary.replace(path)


def write_text(path: str | Path, text: str) -> None:
    """Write `text` to `path`, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def _blaming(path: Path) -> Iterator[None]:
    """Name `path`, which the caller knows, in an error about a temporary file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
