# mypy: disable-error-code="import-untyped"
"""The one door to ExecuTorch: every name that the backend takes from it, imported quietly.

ExecuTorch marks its AOTInductor classes as experimental with warnings, and one of its dependencies
logs a deprecation of its own while it is imported. Neither is news to a user of this package.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quietly() -> Iterator[None]:
    """Hold back what ExecuTorch says about itself; errors still pass."""
    noisy = logging.getLogger("torch.utils._pytree")
    level = noisy.level
    noisy.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        noisy.setLevel(level)


with quietly():
    from executorch.backends.aoti.aoti_partitioner import AotiPartitioner
    from executorch.exir import (
        EdgeCompileConfig,
        ExecutorchBackendConfig,
        ExecutorchProgramManager,
        schema,
        to_edge_transform_and_lower,
    )
    from executorch.exir._serialize._named_data_store import NamedDataStore
    from executorch.exir._serialize._program import deserialize_pte_binary
    from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
    from executorch.exir.backend.compile_spec_schema import CompileSpec
    from executorch.exir.backend.partitioner import PartitionResult
    from executorch.exir.dialects.edge._ops import EdgeOpOverload
    from executorch.exir.lowered_backend_module import get_lowered_submodules
    from executorch.exir.passes.sym_shape_eval_pass import HintBasedSymShapeEvalPass

__all__ = [
    "AotiPartitioner",
    "BackendDetails",
    "CompileSpec",
    "EdgeCompileConfig",
    "EdgeOpOverload",
    "ExecutorchBackendConfig",
    "ExecutorchProgramManager",
    "HintBasedSymShapeEvalPass",
    "NamedDataStore",
    "PartitionResult",
    "PreprocessResult",
    "deserialize_pte_binary",
    "get_lowered_submodules",
    "quietly",
    "schema",
    "to_edge_transform_and_lower",
]
