"""The backend that ExecuTorch calls: a delegate's edge program in, its payload and blobs out.

ExecuTorch finds a backend by the name of its class among the subclasses of `BackendDetails`.
"""

from __future__ import annotations

from typing import final

from torch.export import ExportedProgram

from backend._executorch import BackendDetails, CompileSpec, NamedDataStore, PreprocessResult
from backend.compile.method import CompiledMethod, compile_method
from backend.settings import Settings


@final
class FxCudaBackend(BackendDetails):  # type: ignore[misc]
    """Runs the passes, compiles with AOTInductor, packs the payload."""

    @classmethod
    def preprocess_multimethod(
        cls,
        edge_programs: dict[str, list[ExportedProgram]],
        compile_specs: dict[str, list[list[CompileSpec]]],
    ) -> dict[str, list[PreprocessResult]]:
        """Lower each method with its name among the specs; ExecuTorch tells it only here."""
        return {
            method: [
                cls.preprocess(program, [*specs, CompileSpec("method", method.encode())])
                for program, specs in zip(programs, compile_specs[method], strict=True)
            ]
            for method, programs in edge_programs.items()
        }

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """Lower one delegate.

        Raises:
            BackendError, fxpasses.PassError: see `backend.compile.method`.
        """
        compiled = compile_method(edge_program, Settings.from_specs(compile_specs))
        return PreprocessResult(
            processed_bytes=compiled.payload.to_bytes(),
            debug_handle_map={},
            data_store_output=stored(compiled).get_named_data_store_output(),
            _delegate_info_meta=compiled.passes,
        )


def stored(compiled: CompiledMethod) -> NamedDataStore:
    """The blobs under their keys; equal blobs of several methods are stored once."""
    store = NamedDataStore()
    for kind, data in compiled.blobs.items():
        store.add_named_data(compiled.payload.blobs[kind].key, data)
    return store
