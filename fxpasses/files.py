"""Writing files whole or not at all.

    with replacing(path) as temporary:
        torch.export.save(program, temporary)

The block writes a temporary file in the same directory; leaving it without an error renames the
file to `path` in one step. A reader never sees half a file, and an error leaves the old one.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path with the name of `path`, which becomes `path` at the end.

    A symbolic link is followed.

    Raises:
        OSError: the directory is missing or cannot be written, or `path` is a device, a pipe or
            anything else that is no regular file; it names `path`.
    """
    path = _regular(Path(path))
    with _blaming(path):
        holder = tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent)
    with holder as directory:
        temporary = Path(directory) / path.name
        yield temporary
        with _blaming(path):
            temporary.replace(path)


def _regular(path: Path) -> Path:
    """Where a regular file at `path` lies, or would: a rename would take the place of others."""
    place = Path(os.path.realpath(path))
    if place.is_symlink() or (place.exists() and not place.is_file()):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return place


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
