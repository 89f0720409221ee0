"""A pipeline as one of ExecuTorch's graph transforms.

    to_edge_transform_and_lower(
        torch.export.export(module, inputs),
        transform_passes=[transform_pass("default")],
        partitioner=[...],
    )

`EdgeProgramManager.transform` takes it as well. The program is in the edge dialect by then: passes
match its operators as the ATen ones inside, and what they insert is spelled as an edge operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult

from fxpasses.events import Listener
from fxpasses.pipeline import Pipeline
from fxpasses.program import module_of

TransformPass: TypeAlias = Callable[[GraphModule], PassResult]


def transform_pass(
    pipeline: Pipeline | str, verify: str = "metadata", listeners: Sequence[Listener] = ()
) -> TransformPass:
    """A callable that runs `pipeline` on a graph module and answers a `PassResult`.

    Args:
        pipeline: a pipeline or its text.
        verify: "off", "structure" or "metadata", checked after each pass that changed something;
            "numeric" needs inputs, which ExecuTorch does not hand over.
        listeners: told of each event.

    The result holds a new graph module where something changed, and otherwise the one that was
    handed in, with `modified` false: ExecuTorch then keeps the program that it has.
    """
    parsed = Pipeline.parse(pipeline) if isinstance(pipeline, str) else pipeline

    def transform(module: GraphModule) -> PassResult:
        result = parsed.run(module, verify=verify, listeners=listeners)
        return PassResult(module_of(result.program), result.changed)

    transform.__name__ = str(parsed)  # what ExecuTorch calls the pass when it fails
    return transform
