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
    """Yield a temporary path with the suffix of `path`, which becomes `path` at the end.

    Raises:
        OSError: the directory is missing or cannot be written.
    """
    path = Path(path)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as directory:
        temporary = Path(directory) / path.name
        yield temporary
        temporary.replace(path)


def write_text(path: str | Path, text: str) -> None:
    """Write `text` to `path`, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
