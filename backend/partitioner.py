"""The partitioner: gives whole programs to AOTInductor and says how to compile them.

    partitioner = CudaPartitioner(passes="remove-async-asserts", device="cpu")
    to_edge_transform_and_lower(program, partitioner=[partitioner])

It tags and nothing else. Passes and device travel in the compile specs as text, so that a saved
program can tell which pipeline made it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node

from backend._executorch import AotiPartitioner, CompileSpec, PartitionResult, quietly
from backend.compile.prepare import prepare
from backend.delegate import FxCudaBackend
from backend.errors import NotSupported
from backend.settings import Settings, device_name, pipeline_text
from fxpasses import Pipeline
from fxpasses.regions import regions

with quietly():  # deriving from an experimental class warns, too

    class CudaPartitioner(AotiPartitioner):  # type: ignore[misc]
        """Tag every operator for `FxCudaBackend`.

        Args:
            passes: the pipeline that runs before compiling, as text or as a `Pipeline`; None is
                `cuda` or `cpu`, the one made for the device.
            device: "cpu", "cuda" or "cuda:N"; None picks the GPU where there is one.
            compile_specs: more specs for the backend; a key given here wins.

        Raises:
            fxpasses.PassError: the pipeline's text is wrong; an unknown pass is `UnknownPass`.
            InvalidArgument: there is no such device.
        """

        def __init__(
            self,
            passes: str | Pipeline | None = None,
            device: str | torch.device | None = None,
            compile_specs: Sequence[CompileSpec] = (),
        ) -> None:
            name = device_name(device)
            settings = Settings(pipeline_text(passes, name), name)
            with quietly():
                super().__init__(FxCudaBackend.__name__, [*settings.to_specs(), *compile_specs])

        def __init_subclass__(cls, **kwargs: Any) -> None:
            with quietly():
                super().__init_subclass__(**kwargs)

        def transform_for_pre_decomposition(self, program: ExportedProgram) -> ExportedProgram:
            """What the edge dialect would lose is put in a form that survives it.

            ExecuTorch calls this from version 1.5 on; on earlier ones only `backend.lower` does it.
            """
            return prepare(program)

        def ops_to_not_decompose(
            self, program: ExportedProgram
        ) -> tuple[list[OpOverload], Callable[[Node], bool] | None]:
            """Every operator of every region: Inductor brings its own decompositions."""
            found = {n.target for r in regions(program.graph_module) for n in r.graph.nodes}
            return [target for target in found if isinstance(target, OpOverload)], None

        def partition(self, program: ExportedProgram) -> PartitionResult:
            """Tag `program`, an edge program.

            Raises:
                NotSupported: the program writes one of its inputs.
            """
            written = program.graph_signature.user_inputs_to_mutate
            if written:
                name = next(iter(written.values()))
                raise NotSupported(
                    f'the program writes its input "{name}" in place; return the new value instead'
                )
            return super().partition(program)
