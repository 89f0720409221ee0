"""Lower programs into one .pte file.

    lowered = lower({"prefill": prefill, "decode": decode}, device="cpu")
    for remark in lowered.remarks["decode"]:
        print(remark)
    lowered.save("model.pte")

ExecuTorch does the work, through `CudaPartitioner`; this adds what a caller wants to know of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from backend._executorch import (
    EdgeCompileConfig,
    ExecutorchBackendConfig,
    ExecutorchProgramManager,
    HintBasedSymShapeEvalPass,
    get_lowered_submodules,
    quietly,
    results_in_order,
    to_edge_transform_and_lower,
)
from backend.compile.aoti import LOCK
from backend.compile.prepare import prepare
from backend.errors import AccessFailed, BackendError, Internal, InvalidArgument, first_line
from backend.partitioner import CudaPartitioner
from backend.program import pte
from backend.runtime.load import load
from backend.self_check import DEFAULT, SelfCheck, prove
from backend.settings import Settings
from fxpasses import PassError, PassReport, Pipeline, PipelineResult, Remark
from fxpasses.files import replacing


@dataclass(frozen=True)
class LoweredProgram:
    """What `lower` returns.

    Attributes:
        pipeline: the text of the passes that ran.
        device: the device that the methods were compiled for.
        results: what the passes did, by method.
    """

    pipeline: str
    device: str
    results: dict[str, PipelineResult]
    _manager: ExecutorchProgramManager

    @property
    def methods(self) -> list[str]:
        """The methods' names."""
        return sorted(self.results)

    @property
    def reports(self) -> dict[str, list[PassReport]]:
        """For each method, a report of each pass and region."""
        return {method: result.reports for method, result in self.results.items()}

    @property
    def remarks(self) -> dict[str, list[Remark]]:
        """For each method, what the passes rewrote and what they left, with reasons."""
        return {method: result.remarks for method, result in self.results.items()}

    @cached_property
    def buffer(self) -> bytes:
        """The bytes of the .pte file."""
        return bytes(self._manager.buffer)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the .pte file, all of it or nothing, and return its path.

        Raises:
            AccessFailed: it cannot be written there.
        """
        target = Path(path)
        try:
            with replacing(target) as temporary:
                temporary.write_bytes(self.buffer)
        except OSError as error:
            raise AccessFailed(f"cannot write {target}: {error.strerror}") from error
        return target


def lower(
    program: ExportedProgram | Mapping[str, ExportedProgram],
    passes: str | Pipeline | None = None,
    device: str | torch.device | None = None,
    self_check: SelfCheck | None = DEFAULT,
) -> LoweredProgram:
    """Lower one program (method "forward") or several, each under its name.

    Args:
        program: from `torch.export.export`; it stays as it was.
        passes: the pipeline to run first, as text or as a `Pipeline`; None is `cuda` or `cpu`, the
            one made for the device.
        device: "cpu", "cuda" or "cuda:N"; None picks the GPU where there is one.
        self_check: how the result is compared with eager; None trusts the compiler.

    Raises:
        fxpasses.PassError: the pipeline's text is wrong, or a pass or its check failed.
        SelfCheckFailed: the lowered program does not do what eager does.
        BackendError: the program cannot be lowered, or a tool below us failed.
    """
    partitioner = CudaPartitioner(passes, device)
    programs = named(program)
    with LOCK:
        manager, results = through_executorch(programs, partitioner)
    settings = Settings.from_specs(partitioner.delegation_spec.compile_specs)
    lowered = LoweredProgram(settings.passes, settings.device, results, manager)
    if self_check is None:
        pte.read(lowered.buffer, "the lowered program")
    else:
        with load(lowered.buffer) as loaded:
            prove(programs, loaded, self_check)
    return lowered


def named(program: ExportedProgram | Mapping[str, ExportedProgram]) -> dict[str, ExportedProgram]:
    """The programs by method name."""
    programs = dict(program) if isinstance(program, Mapping) else {"forward": program}
    for name, value in programs.items():
        if not isinstance(value, ExportedProgram):
            raise InvalidArgument(
                f"method {name!r} is a {type(value).__name__}; "
                "torch.export.export(module, inputs) makes the ExportedProgram that is lowered"
            )
    if not programs:
        raise InvalidArgument("there is no program to lower")
    return programs


def through_executorch(
    programs: dict[str, ExportedProgram], partitioner: CudaPartitioner
) -> tuple[ExecutorchProgramManager, dict[str, PipelineResult]]:
    """Hand the programs to ExecuTorch, which calls the partitioner and the backend."""
    try:
        with quietly(), results_in_order():
            edge = to_edge_transform_and_lower(
                {name: prepare(program) for name, program in programs.items()},
                partitioner={name: [partitioner] for name in programs},
                compile_config=EdgeCompileConfig(_check_ir_validity=False, _skip_dim_order=True),
            )
            results = {name: pass_results(edge.exported_program(name)) for name in programs}
            config = ExecutorchBackendConfig(sym_shape_eval_pass=HintBasedSymShapeEvalPass())
            return edge.to_executorch(config), results
    except (BackendError, PassError):
        raise
    except Exception as error:  # ExecuTorch raises errors of any kind
        raise Internal(f"ExecuTorch cannot lower the program: {first_line(error)}") from error


def pass_results(program: ExportedProgram) -> PipelineResult:
    """What the backend reported of the passes: it travels in ExecuTorch's `_delegate_info_meta`."""
    delegates: list[Any] = [module for _, module, _ in get_lowered_submodules(program.graph_module)]
    results = [module.meta["_delegate_info_meta"] for module in delegates]
    return results[0] if results else PipelineResult(program)
