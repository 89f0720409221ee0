"""A pipeline as one custom pass of Inductor.

    torch.compile(model, options={"post_grad_custom_pre_pass": inductor_pass("default")})

Inductor takes one object for each of its hooks; a pipeline is one object, however many packages
its passes come from. It fits `joint_custom_pre_pass` and `joint_custom_post_pass` (forward and
backward in one graph) and `post_grad_custom_pre_pass` and `post_grad_custom_post_pass` (each in
its own). Inductor keeps caching what it compiles, under the pipeline's fingerprint.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from torch._inductor.custom_graph_pass import CustomGraphPass  # documented; in torch 2.11 to 2.14
from torch.fx import Graph

from fxpasses.adapters.fingerprint import fingerprint
from fxpasses.errors import InvalidProgram
from fxpasses.events import Listener
from fxpasses.pipeline import Pipeline


class InductorPass(CustomGraphPass):
    """Runs a pipeline on the graphs that Inductor hands over, in place."""

    def __init__(self, pipeline: Pipeline, verify: str, listeners: Sequence[Listener]) -> None:
        self.pipeline = pipeline
        self.verify = verify
        self.listeners = listeners

    def __call__(self, graph: Graph) -> None:
        """Rewrite `graph`. Inductor calls this for each graph of control flow by itself.

        Raises:
            InvalidProgram: the graph belongs to no module.
            PassError: a pass failed, or a check after it.
        """
        if graph.owning_module is None:
            raise InvalidProgram("the graph belongs to no module: torch.fx.GraphModule makes one")
        self.pipeline.run(
            graph.owning_module,
            verify=self.verify,
            listeners=self.listeners,
            in_place=True,
            nested=False,
        )

    def uuid(self) -> str | None:
        """What Inductor's caches know the pipeline by; None turns them off."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str | None:
        return fingerprint(self.pipeline)


def inductor_pass(
    pipeline: Pipeline | str, verify: str = "metadata", listeners: Sequence[Listener] = ()
) -> InductorPass:
    """One object for one of Inductor's custom pass hooks.

    Args:
        pipeline: a pipeline or its text.
        verify: "off", "structure" or "metadata", checked after each pass that changed something.
        listeners: told of each event. Inductor runs no pass when its cache holds the result.
    """
    parsed = Pipeline.parse(pipeline) if isinstance(pipeline, str) else pipeline
    return InductorPass(parsed, verify, tuple(listeners))
