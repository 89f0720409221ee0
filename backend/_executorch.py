# mypy: disable-error-code="import-untyped"
"""The one door to ExecuTorch: every name that the backend takes from it, imported quietly.

ExecuTorch marks its AOTInductor classes as experimental with warnings, its dependencies log
deprecations of their own, and torch logs that a machine without a GPU has none. None of it is news
to a user of this package.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

NOISY_LOGGERS = (
    "torch._subclasses.fake_tensor",  # logs what it raises, also where that is expected
    "torch.utils._pytree",
    "torch.utils.cpp_extension",
)


@contextmanager
def quietly() -> Iterator[None]:
    """Hold back what ExecuTorch says about itself; errors still pass."""
    root = logging.getLogger()
    levels = {name: logging.getLogger(name).level for name in NOISY_LOGGERS}
    for name in NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    root.addFilter(is_news)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        root.removeFilter(is_news)
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def is_news(record: logging.LogRecord) -> bool:
    """Whether a record of the root logger, which ExecuTorch uses, is more than chatter."""
    return "executorch" not in record.pathname or record.levelno >= logging.ERROR


with quietly():
    from executorch.backends.aoti.aoti_partitioner import AotiPartitioner
    from executorch.exir import (
        EdgeCompileConfig,
        ExecutorchBackendConfig,
        ExecutorchProgramManager,
        lowered_backend_module,
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

# ExecuTorch 1.2 lists a delegate's results as they stand in its graph, and then refuses a program
# where one of them stands before the new value of a buffer. Later versions sort them.
SORTS_RESULTS = hasattr(lowered_backend_module, "arrange_graph_outputs")


@contextmanager
def results_in_order() -> Iterator[None]:
    """Let ExecuTorch 1.2 keep a delegate's nodes in the order of the program's graph.

    It sorts them breadth first, so that a result passes the buffers' new values. The order of the
    graph is a topological one already. Where ExecuTorch sorts results, this changes nothing.
    """
    if SORTS_RESULTS:
        yield
        return
    sort = lowered_backend_module.topo_sort
    lowered_backend_module.topo_sort = list
    try:
        yield
    finally:
        lowered_backend_module.topo_sort = sort


__all__ = [
    "SORTS_RESULTS",
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
    "results_in_order",
    "schema",
    "to_edge_transform_and_lower",
]
