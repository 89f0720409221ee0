"""Lower a program with AOTInductor into an ExecuTorch file, load it and run it.

    lowered = backend.lower(torch.export.export(model, inputs))
    with backend.load(lowered.save("model.pte")) as program:
        result = program["forward"](*inputs)

`CudaPartitioner` does the lowering inside plain ExecuTorch as well. A machine without a GPU lowers
for and runs on the CPU; nothing else differs.
"""

from __future__ import annotations

from backend.delegate import FxCudaBackend
from backend.errors import (
    AccessFailed,
    BackendError,
    Internal,
    InvalidArgument,
    InvalidProgram,
    NotSupported,
    SelfCheckFailed,
)
from backend.lowering import LoweredProgram, lower
from backend.partitioner import CudaPartitioner
from backend.runtime.load import load
from backend.runtime.method import Method
from backend.runtime.options import RuntimeOptions
from backend.runtime.program import Program
from backend.self_check import SelfCheck

__all__ = [
    "AccessFailed",
    "BackendError",
    "CudaPartitioner",
    "FxCudaBackend",
    "Internal",
    "InvalidArgument",
    "InvalidProgram",
    "LoweredProgram",
    "Method",
    "NotSupported",
    "Program",
    "RuntimeOptions",
    "SelfCheck",
    "SelfCheckFailed",
    "load",
    "lower",
]
