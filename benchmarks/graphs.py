"""Synthetic programs of any size, with the metadata that a traced program carries.

Every node records one f32[4, 4] fake tensor, or one mask of that shape, so that a benchmark
measures the graph work and never the tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, GraphModule, Node
from torch.fx._lazy_graph_module import _LazyGraphModule

aten = torch.ops.aten

Step = Callable[[Graph, Node], Node]


class Builder:
    """A graph under construction.

    Args:
        inputs: names of placeholders, each with the dtype of its 4 by 4 tensor.
    """

    def __init__(self, **inputs: torch.dtype) -> None:
        self.graph = Graph()
        self.mode = FakeTensorMode()
        with self.mode:
            dtypes = (torch.float32, torch.bool)
            self.values = {dtype: torch.empty(4, 4, dtype=dtype) for dtype in dtypes}
            self.scalar = torch.empty(())
        self.inputs = {name: self._input(name, self.values[kind]) for name, kind in inputs.items()}

    def _input(self, name: str, value: Any) -> Node:
        node = self.graph.placeholder(name)
        node.meta["val"] = value
        return node

    def one(self) -> Node:
        """Another input: one number."""
        return self._input("one", self.scalar)

    def call(self, target: Any, *args: Any, dtype: torch.dtype = torch.float32) -> Node:
        """Append a call."""
        node = self.graph.call_function(target, args)
        node.meta["val"] = self.values[dtype]
        return node

    def module(self, *results: Node) -> GraphModule:
        """The finished module; its Python code is generated when it is first called."""
        self.graph.output(results)
        return _LazyGraphModule({}, self.graph)


def chain(length: int, targets: Sequence[tuple[Any, ...]]) -> GraphModule:
    """`length` calls in a row, each of the next target on the last result and the constants."""
    builder = Builder(x=torch.float32)
    node = builder.inputs["x"]
    for place in range(length):
        target, *constants = targets[place % len(targets)]
        node = builder.call(target, node, *constants)
    return builder.module(node)


def plain(length: int) -> GraphModule:
    """A chain in which no pass finds anything."""
    return chain(length, [(aten.add.Tensor, 1), (aten.sin.default,), (aten.neg.default,)])


def squares(length: int) -> GraphModule:
    """A chain with x ** 2 as one call in four."""
    others = [(aten.sin.default,), (aten.cos.default,), (aten.neg.default,)]
    return chain(length, [(aten.pow.Tensor_Scalar, 2), *others])


def fills(length: int) -> GraphModule:
    """A chain with a masked fill as one call in four."""
    builder = Builder(x=torch.float32, mask=torch.bool)
    node, mask, value = *builder.inputs.values(), builder.one()
    for place in range(length):
        if place % 4:
            node = builder.call(aten.add.Tensor, node, 1)
        else:
            node = builder.call(aten.index_put.default, node, [mask], value)
    return builder.module(node)


def histories(length: int) -> GraphModule:
    """Two masks, each made by the same `length` steps from the same inputs."""
    builder = Builder(x=torch.bool, y=torch.bool)
    x, y = builder.inputs.values()
    results = []
    for _ in range(2):
        mask = x
        for place in range(length):
            target = (aten.logical_and.default, aten.logical_or.default)[place % 2]
            mask = builder.call(target, mask, y, dtype=torch.bool)
        results.append(mask)
    return builder.module(*results)
