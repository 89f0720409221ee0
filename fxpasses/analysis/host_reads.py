"""Which operators make the host wait for the device.

    host_reads(program)    # [HostRead(node="index", operator="aten.index.Tensor", ...)]

A boolean mask index must know how many elements the mask picks before it can allocate its result;
`.item()` must know a value. On a GPU each is a copy to the host and a wait, on every call, and
none can be recorded in a CUDA graph. Which operators wait, and why: `fxpasses.analysis.waits`.
"""

from __future__ import annotations

from dataclasses import dataclass

from fxpasses.analysis.waits import what_it_reads
from fxpasses.operators import describe
from fxpasses.program import Program, module_of
from fxpasses.regions import regions
from fxpasses.remarks import source_of


@dataclass(frozen=True)
class HostRead:
    """One wait: the node and operator, its region, the user's source line, and what is read."""

    node: str
    operator: str
    region: str
    source: str
    reads: str


def host_reads(program: Program) -> list[HostRead]:
    """Every operator of `program` that reads the device from the host when run on one."""
    return [
        HostRead(node.name, describe(node), region.path, source_of(node), reads)
        for region in regions(module_of(program))
        for node in region.graph.nodes
        if (reads := what_it_reads(node))
    ]
