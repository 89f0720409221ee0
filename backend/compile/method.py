"""One method, from edge program to payload and blobs: the steps in their order.

    edge dialect -> ATen -> views -> device -> passes -> decompositions -> AOTInductor -> payload

Passes see the graph as torch.export writes it, and on the device that it will run on.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import cast

import torch
from torch.export import ExportedProgram
from torch.export.passes import move_to_device_pass

from backend.compile import aoti
from backend.compile.describe import example_inputs, input_specs, output_specs
from backend.compile.edge import to_aten
from backend.compile.views import restore_views
from backend.program.payload import Blob, Payload
from backend.settings import Settings, require_device
from decomps import decomposition_table
from fxpasses import Pipeline, PipelineResult
from fxpasses.analysis import writes_buffers
from fxpasses.program import fork
from fxpasses.regions import regions


@dataclass(frozen=True)
class CompiledMethod:
    """A method ready to be stored, and what the passes did to it."""

    payload: Payload
    blobs: dict[str, bytes]
    passes: PipelineResult


def compile_method(edge_program: ExportedProgram, settings: Settings) -> CompiledMethod:
    """Compile `edge_program`, which is edited, as `settings` say.

    Raises:
        BackendError, fxpasses.PassError: a step refuses or fails.
    """
    require_device(settings.device)
    with aoti.LOCK:
        passes = Pipeline.parse(settings.passes).run(aten_program(edge_program, settings.device))
        program = decomposed(cast(ExportedProgram, passes.program), settings.device)
        inputs = example_inputs(program)
        fold = may_fold(program)
        compiled = aoti.compile_program(program, inputs, settings.device, fold)
    payload = Payload(
        torch_version=torch.__version__,
        executorch_version=version("executorch"),
        device=settings.device,
        pipeline=settings.passes,
        method=settings.method,
        inputs=input_specs(program, inputs),
        outputs=output_specs(program),
        mutated_buffers=tuple(program.graph_signature.buffers_to_mutate.values()),
        host_weights=compiled.host_weights,
        remarks=tuple(remark.to_dict() for remark in passes.remarks),
        blobs={kind: Blob.of(kind, data) for kind, data in compiled.blobs.items()},
    )
    return CompiledMethod(payload, compiled.blobs, passes)


def aten_program(edge_program: ExportedProgram, device: str) -> ExportedProgram:
    """The program as passes want it: ATen operators, views as views, on `device`."""
    program = to_aten(edge_program)
    for region in regions(program.graph_module):
        restore_views(region.module, nested=bool(region.path))
    return on_device(program, device)


def on_device(program: ExportedProgram, device: str) -> ExportedProgram:
    """`program` with its weights on `device` and operators that compute there."""
    if device == "cpu":
        return program
    return move_to_device_pass(fork(program), device)


def decomposed(program: ExportedProgram, device: str) -> ExportedProgram:
    """`program` without the operators of our table; retraced only where one of them occurs."""
    table = decomposition_table(device)
    present = {
        node.target for region in regions(program.graph_module) for node in region.graph.nodes
    }
    return program.run_decompositions(table) if present & table.keys() else program


def may_fold(program: ExportedProgram) -> bool:
    """Whether Inductor may fold constants: not in a program that writes a buffer."""
    return not writes_buffers(program)
