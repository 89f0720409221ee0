"""Read a .pte file: its methods, each one whole delegate of ours, and the named data.

    file = read(data, "model.pte")
    file.methods["forward"].payload.device

ExecuTorch's own deserializer parses the file. It expects a sound one, so sizes are checked first
and whatever it throws on a damaged one becomes `InvalidProgram`.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from backend._executorch import deserialize_pte_binary, quietly
from backend.errors import InvalidProgram, first_line
from backend.program.plan import MethodPlan, method_plan

IDENTIFIERS = (b"ET12", b"ET13")
EXTENDED_HEADER = b"eh00"


@dataclass(frozen=True)
class PteFile:
    """The methods of a file and its named data, by key."""

    methods: dict[str, MethodPlan]
    named_data: dict[str, bytes]


def read(data: bytes, path: str) -> PteFile:
    """Parse the bytes of a .pte file; `path` names it in errors.

    Raises:
        InvalidProgram: no ExecuTorch program, a truncated or damaged one, or a payload that is
            not as this version writes it.
        NotSupported: a method that is not one whole delegate of this backend.
    """
    check_header(data, path)
    file = deserialize(data, path)
    try:
        return parsed(file, path)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InvalidProgram(f"{path} is damaged: {first_line(error)}") from error


def parsed(file: Any, path: str) -> PteFile:
    """The methods and blobs of a file that ExecuTorch could read."""
    delegates = [bytes(item.data) for item in file.program.backend_delegate_data]
    plans = file.program.execution_plan
    return PteFile(
        methods={plan.name: method_plan(plan, delegates, path) for plan in plans},
        named_data=named_data(file.named_data),
    )


def check_header(data: bytes, path: str) -> None:
    """Refuse what is no ExecuTorch program, and one that ends too early."""
    if len(data) < 64 or data[4:8] not in IDENTIFIERS:
        raise InvalidProgram(f"{path} is no ExecuTorch program (.pte)")
    if data[8:12] != EXTENDED_HEADER:
        raise InvalidProgram(f"{path} has no segments, so no delegate of this backend is in it")
    program, start, segments = (int.from_bytes(data[at : at + 8], "little") for at in (16, 24, 32))
    expected = max(program, start + segments)
    if len(data) < expected:
        raise InvalidProgram(f"{path} is cut off: it has {len(data)} bytes of {expected}")


def deserialize(data: bytes, path: str) -> Any:
    """ExecuTorch's view of the file."""
    try:
        with quietly(), flatc_found():
            return deserialize_pte_binary(data)
    except Exception as error:  # it checks nothing, so a damaged file ends in any of them
        raise InvalidProgram(f"{path} is damaged: {first_line(error)}") from error


def named_data(store: Any) -> dict[str, bytes]:
    """The file's named data, by key."""
    entries = store.pte_data.items() if store is not None else ()
    return {
        key: bytes(store.buffers[getattr(entry, "buffer_index", entry)]) for key, entry in entries
    }


@contextmanager
def flatc_found() -> Iterator[None]:
    """Point ExecuTorch 1.2 at the flatc that it ships when no environment is activated."""
    if shutil.which("flatc") or "FLATC_EXECUTABLE" in os.environ:
        yield
        return
    os.environ["FLATC_EXECUTABLE"] = str(flatc_path())
    try:
        yield
    finally:
        del os.environ["FLATC_EXECUTABLE"]


def flatc_path() -> Path:
    """The flatc beside this interpreter, or inside the executorch package."""
    script = Path(sysconfig.get_path("scripts")) / "flatc"
    return script if script.exists() else Path(str(files("executorch"))) / "data" / "bin" / "flatc"
