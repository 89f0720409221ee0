"""A pipeline in front of a `torch.compile` backend.

    torch.compile(model, backend=backend("default"))                 # then Inductor
    torch.compile(model, backend=backend("default", then=compiler))  # then compiler(graph, inputs)

Dynamo's graphs call torch functions and methods. The pipeline runs one level below, on the ATen
graphs that AOTAutograd makes of them: the forward graph, and in training the backward graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, cast

import torch
from functorch.compile import make_boxed_func  # type: ignore[import-untyped]
from torch._dynamo.backends.common import aot_autograd  # this, and what follows, in 2.11 to 2.14
from torch._inductor import config
from torch._inductor.compile_fx import compile_fx
from torch._ops import OpOverload
from torch.fx import GraphModule

from fxpasses.adapters.inductor import inductor_pass
from fxpasses.errors import InvalidOption
from fxpasses.events import Listener
from fxpasses.pipeline import Pipeline
from fxpasses.program import module_of

Compiled: TypeAlias = Callable[..., Any]
GraphCompiler: TypeAlias = Callable[[GraphModule, Sequence[torch.Tensor]], Compiled]

_HOOK = "post_grad_custom_pre_pass"


def backend(
    pipeline: Pipeline | str,
    then: Literal["inductor"] | GraphCompiler = "inductor",
    *,
    decompositions: dict[OpOverload, Callable[..., Any]] | None = None,
    verify: str = "metadata",
    listeners: Sequence[Listener] = (),
) -> Compiled:
    """A backend for `torch.compile` that runs `pipeline` before it compiles.

    Args:
        pipeline: a pipeline or its text.
        then: "inductor", or a callable that takes an ATen graph module and its inputs and answers
            a function of the same inputs, which returns a list or tuple.
        decompositions: what AOTAutograd takes apart before a callable sees the graph. Inductor
            has its own.
        verify: "off", "structure" or "metadata", checked after each pass that changed something.
        listeners: told of each event.

    Raises:
        InvalidOption: decompositions for Inductor, or a `then` that is neither.
    """
    parsed = Pipeline.parse(pipeline) if isinstance(pipeline, str) else pipeline
    if callable(then):
        return _before_compiler(parsed, then, decompositions or {}, verify, listeners)
    if then != "inductor":
        raise InvalidOption(f'then={then!r}: expected "inductor" or a callable')
    if decompositions is not None:
        raise InvalidOption("Inductor has decompositions of its own: leave them out")
    return _before_inductor(parsed, verify, listeners)


def _before_compiler(
    pipeline: Pipeline,
    compiler: GraphCompiler,
    decompositions: dict[OpOverload, Callable[..., Any]],
    verify: str,
    listeners: Sequence[Listener],
) -> Compiled:
    def compile_graph(module: GraphModule, inputs: Sequence[torch.Tensor]) -> Compiled:
        result = pipeline.run(module, verify=verify, listeners=listeners)
        compiled = compiler(module_of(result.program), inputs)
        boxed = getattr(compiled, "_boxed_call", False)
        return compiled if boxed else make_boxed_func(compiled)

    wrapped: Compiled = aot_autograd(fw_compiler=compile_graph, decompositions=decompositions)
    return wrapped


def _before_inductor(pipeline: Pipeline, verify: str, listeners: Sequence[Listener]) -> Compiled:
    ours = inductor_pass(pipeline, verify, listeners)

    def compile_graph(
        module: GraphModule,
        inputs: Sequence[torch.Tensor],
        options: dict[str, Any] | None = None,
    ) -> Compiled:
        patches = dict(options or {})
        if patches.get(_HOOK, getattr(config, _HOOK)) is not None:
            raise InvalidOption(f"Inductor's {_HOOK} is set already: make one pipeline of both")
        return cast(Compiled, compile_fx(module, inputs, config_patches={**patches, _HOOK: ours}))

    return compile_graph
