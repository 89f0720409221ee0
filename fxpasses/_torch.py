"""The one place where the framework touches private parts of torch.

Known to work on torch 2.11 to 2.14. Each function says what it needs, so that a new torch breaks
here, by name, and nowhere else.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import (
    FakeTensor,
    FakeTensorMode,
    unset_fake_temporarily,
)
from torch.export import ExportedProgram
from torch.fx import GraphModule
from torch.fx._lazy_graph_module import _LazyGraphModule
from torch.fx.traceback import NodeSource, NodeSourceAction
from torch.utils._pytree import tree_leaves

_SYMBOLIC = (torch.SymInt, torch.SymBool, torch.SymFloat)


def fake_mode_of(values: Iterable[Any]) -> FakeTensorMode | None:
    """The fake mode that `values` were traced under, or None for a graph without metadata."""
    return next((value.fake_mode for value in values if isinstance(value, FakeTensor)), None)


@contextmanager
def evaluating(mode: FakeTensorMode) -> Iterator[None]:
    """Run operators on fake values without leaving a trace in the program's shape environment."""
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(enable_python_dispatcher())
        stack.enter_context(mode)
        if mode.shape_env is not None:
            stack.enter_context(mode.shape_env.ignore_fresh_unbacked_symbols())
        yield


@contextmanager
def real_tensors() -> Iterator[None]:
    """Make real tensors, also where a compiler that calls us has turned fake ones on."""
    with unset_fake_temporarily():
        yield


def expression(size: Any) -> Any:
    """A hashable stand-in for a size: the int itself, or the sympy expression of a SymInt."""
    if type(size) is int:  # nearly always, and asked of every dim of every node
        return size
    return size.node.expr if isinstance(size, _SYMBOLIC) else size


def always(condition: Any) -> bool:
    """Whether a condition on sizes holds for every assignment; adds no guard."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    return bool(statically_known_true(condition))


def is_erased(node: torch.fx.Node) -> bool:
    """Whether `node` was taken out of its graph."""
    return bool(node._erased)  # noqa: SLF001  # this file is where that is allowed


def creates(node: torch.fx.Node, pass_name: str, origins: tuple[torch.fx.Node, ...]) -> None:
    """Record in `node.meta["from_node"]` which nodes a pass made it from."""
    action = NodeSourceAction.REPLACE if origins else NodeSourceAction.CREATE
    sources = [NodeSource(origin, pass_name, action) for origin in origins]
    node.meta["from_node"] = sources or [NodeSource(None, pass_name, action)]


def is_composite(operator: torch._ops.OpOverload) -> bool:
    """Whether ATen computes `operator` from others: its schema may then hide that it aliases."""
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return bool(operator.has_kernel_for_dispatch_key(key))


def storage_of(value: torch.Tensor) -> int | None:
    """An identity that tensors with shared memory have in common; None where there is none."""
    if value.layout is not torch.strided:
        return None
    identity: int = value.untyped_storage()._cdata  # noqa: SLF001  # storages compare as objects
    return identity


def hint(size: Any) -> int:
    """The size that a symbolic size had when the program was traced; 0 where it had none."""
    known = size.node.hint if isinstance(size, torch.SymInt) else size
    return known if isinstance(known, int) else 0


def copy_module(module: GraphModule) -> GraphModule:
    """A module with a graph of its own, whose Python code is generated when it is first called."""
    graph = copy.deepcopy(module.graph)
    for node, original in zip(graph.nodes, module.graph.nodes, strict=True):
        node.name = original.name  # the copy renames an input that shadows a builtin: "input"
    copied = _LazyGraphModule(module, graph, type(module).__name__)
    copied.meta = dict(module.meta)
    return copied


def with_module(program: ExportedProgram, module: GraphModule) -> ExportedProgram:
    """`program` around another graph module; its tables are copied, its tensors shared."""
    copied = copy.copy(program)
    copied._graph_module = module  # noqa: SLF001  # the constructor would generate code
    copied._graph_signature = copy.deepcopy(program.graph_signature)  # noqa: SLF001
    copied._state_dict = dict(program.state_dict)  # noqa: SLF001
    copied._constants = dict(program.constants)  # noqa: SLF001
    return copied


def sizes_from_data(values: Any) -> set[Any]:
    """The symbols in `values` whose number is found in data when the program runs."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    return set(free_unbacked_symbols(tree_leaves(values)))


def without_symbols(signature: Any) -> Any:
    """A value's signature with every data-dependent size as "?": each run names its own."""
    if isinstance(signature, tuple):
        return tuple(without_symbols(part) for part in signature)
    names = getattr(signature, "free_symbols", ())
    return "?" if any(str(name).startswith(("u", "zuf")) for name in names) else signature


@cache
def takes_integer_constants_for_floats() -> bool:
    """Whether Inductor divides integers as floats when one is a constant without dims.

    Its lowering of floor division asks `is_integer_type`, which once said no to any node that is
    no TensorBox, such as `ir.Constant`: pytorch#186164, in 2.11 to 2.13, mended in 2.14.
    """
    from torch._inductor import ir, lowering

    constant = ir.Constant(value=3, dtype=torch.int64, device=torch.device("cpu"))
    return not lowering.is_integer_type(constant)
