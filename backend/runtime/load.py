"""Load a program: check all of it, then unpack and open its libraries.

    program = load("model.pte")

A library is native code, so nothing of it is written to disk or opened before versions, device and
every blob's sha256 are as recorded.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from backend.compile.library import Library, open_library
from backend.errors import AccessFailed, InvalidArgument, InvalidProgram, NotSupported
from backend.program import pte
from backend.program.payload import Payload
from backend.program.plan import MethodPlan
from backend.program.weights import unpack
from backend.runtime.method import Method
from backend.runtime.options import RuntimeOptions
from backend.runtime.program import Program
from backend.settings import device_name, require_device

Blobs = dict[str, bytes]


def load(
    source: str | os.PathLike[str] | bytes,
    weights: str | os.PathLike[str] | None = None,
    options: RuntimeOptions | None = None,
) -> Program:
    """Load a .pte file from its path or its bytes.

    Args:
        source: the file.
        weights: a file with the weights of a program that keeps them outside; programs of this
            format version keep them inside, so it must be None.
        options: see `RuntimeOptions`; None is all defaults.

    Raises:
        AccessFailed: the file cannot be read.
        InvalidProgram: it is no .pte file of ours, or it is damaged.
        NotSupported: its methods need another torch, device or runtime.
    """
    if weights is not None:
        raise InvalidArgument("the program holds its weights itself; load it without weights=")
    data, name = contents(source)
    file = pte.read(data, name)
    device = (options or RuntimeOptions()).device
    plans = {method: placed(plan, device) for method, plan in file.methods.items()}
    for method, plan in plans.items():
        check_versions(plan.payload, f'{name}: method "{method}"')
    blobs = {method: checked_blobs(plan, file.named_data, name) for method, plan in plans.items()}
    return Program({method: build(method, plan, blobs[method]) for method, plan in plans.items()})


def contents(source: str | os.PathLike[str] | bytes) -> tuple[bytes, str]:
    """The bytes of `source` and the name that errors give it."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), "the program"
    path: Any = source
    if not isinstance(path, str | os.PathLike) or "\0" in os.fspath(path):
        raise InvalidArgument(f"{source!r} is no path and no bytes of a program")
    try:
        return Path(source).read_bytes(), os.fspath(source)
    except OSError as error:
        raise AccessFailed(f"cannot read {os.fspath(source)}: {error.strerror}") from error


def placed(plan: MethodPlan, device: str | None) -> MethodPlan:
    """`plan` on `device`, or where it was lowered for."""
    recorded = plan.payload.device
    wanted = device_name(device or recorded)
    if torch.device(wanted).type != torch.device(recorded).type:
        raise NotSupported(f"the program was lowered for {recorded}, so it cannot run on {wanted}")
    if wanted == recorded:
        return plan
    inputs = tuple(replace(spec, device=wanted) for spec in plan.payload.inputs)
    return replace(plan, payload=replace(plan.payload, device=wanted, inputs=inputs))


def check_versions(payload: Payload, where: str) -> None:
    """Native code calls into torch, so it needs the torch that it was compiled against.

    Raises:
        NotSupported: another minor version of torch runs here, or the device is not there.
    """
    if minor(payload.torch_version) != minor(torch.__version__):
        raise NotSupported(
            f"{where} was lowered with torch {payload.torch_version}, this is {torch.__version__}; "
            "lower it again with this torch"
        )
    require_device(payload.device)


def minor(text: str) -> list[str]:
    """The major and minor version of "2.14.1+cpu"."""
    return text.split(".")[:2]


def checked_blobs(plan: MethodPlan, named_data: dict[str, bytes], name: str) -> Blobs:
    """The method's blobs, each with the recorded sha256."""
    blobs = plan.payload.blobs.items()
    try:
        return {kind: blob.check(kind, named_data.get(blob.key)) for kind, blob in blobs}
    except InvalidProgram as error:
        raise InvalidProgram(f"{name}: {error}") from None


def build(name: str, plan: MethodPlan, blobs: Blobs) -> Method:
    """The method, its library opened and its weights on the device."""
    device = plan.payload.device
    weights = unpack(blobs["weights"], torch.device(device), plan.payload.host_weights)
    return Method(name, plan, opened(blobs, device), weights)


def opened(blobs: Blobs, device: str) -> Library:
    """The library, out of a private directory that is gone when this returns.

    Linux keeps a mapped file alive without its name, so no file stays behind.
    """
    with TemporaryDirectory(prefix="fxpasses-library-") as directory:
        path = Path(directory) / "method.so"
        try:
            path.write_bytes(blobs["library"])
            if "extern_kernels" in blobs:
                path.with_suffix(".json").write_bytes(blobs["extern_kernels"])
        except OSError as error:
            raise AccessFailed(f"cannot unpack {path}: {error.strerror}") from error
        return open_library(path, device)
