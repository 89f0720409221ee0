"""Which nodes share memory, and when that memory is written.

A graph straight from `torch.export` may write in place; one that was functionalised does not.
`Memory` answers one question for both: does `operand` still hold, when `reader` reads it, the
value it was created with?

    memory.last_write(mask, before=index_put)    # the writing node, or None

Memory is tracked in classes of nodes that may alias: views with their base, the results of an
in-place operator with what it wrote, inputs that were traced with one storage. Classes are wider
than the truth where a schema is silent, which costs a rewrite and never a wrong answer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from networkx.utils import UnionFind
from torch._ops import OpOverload
from torch.fx import Graph, Node

from fxpasses._torch import is_composite, storage_of
from fxpasses.analysis.effects import effects
from fxpasses.operators import arguments, nodes_in, operator_of
from fxpasses.regions import attribute

if TYPE_CHECKING:
    Classes = UnionFind[Node]

aten = torch.ops.aten

_UNDECLARED = frozenset(
    {aten.set_.source_Tensor, aten.native_dropout.default, aten.lift.default}
    | {aten._unsafe_view.default, aten.unsafe_split.Tensor, aten.unsafe_chunk.default}
    | {aten.unsafe_split_with_sizes.default}
)


class Memory:
    """Alias classes and writes of one graph, as it is when this is built."""

    def __init__(self, graph: Graph) -> None:
        self._order: list[Node] = list(graph.nodes)
        self.position = {node: place for place, node in enumerate(self._order)}
        self.writers = [node for node in graph.nodes if _may_write(node)]
        self._classes: dict[Node, Node] = {}
        self._writes: dict[Node, list[int]] = {}
        if self.writers:
            self._classify(graph)

    def last_write(self, operand: Node, before: Node) -> Node | None:
        """The last node that may change `operand` after it was made and before `before` runs."""
        if not self.writers:
            return None
        if operand not in self.position:  # made by a rewrite, nobody noted where
            return operand
        start, end = self.position[operand], self.position[before]
        writes = self._writes.get(self._classes[operand], [])
        count = bisect_left(writes, end)
        if count == 0 or writes[count - 1] <= start:
            return None
        return self._order[writes[count - 1]]

    def may_alias(self, left: Node, right: Node) -> bool:
        """Whether two nodes may share memory."""
        return left is right or (bool(self.writers) and self._classes[left] == self._classes[right])

    def written(self, operand: Node) -> list[Node]:
        """Every node that may write the memory of `operand`, in order."""
        if not self.writers:
            return []
        return [self._order[place] for place in self._writes.get(self._classes[operand], [])]

    def stands_for(self, new: Node, old: Node) -> None:
        """Let `new`, which a rewrite put in the place of `old`, share its memory and its time."""
        self.position[new] = self.position[old]
        if self.writers:
            self._classes[new] = self._classes[old]

    def _classify(self, graph: Graph) -> None:
        classes: Classes = UnionFind(graph.nodes)
        for node in graph.nodes:
            classes.union(node, *bases(node))
        for sharing in _inputs_by_storage(graph):
            classes.union(*sharing)
        self._classes = {node: classes[node] for node in graph.nodes}
        for writer in self.writers:
            for written in effects(writer).writes or writer.all_input_nodes:
                self._writes.setdefault(self._classes[written], []).append(self.position[writer])


def _may_write(node: Node) -> bool:
    found = effects(node)
    return bool(found.writes) or found.unknown


def bases(node: Node) -> Iterator[Node]:
    """The operands whose memory the result of `node` may share."""
    called = operator_of(node)
    if called is None:
        return
    if (
        called in _UNDECLARED
        or not isinstance(called, OpOverload)
        or effects(node).unknown
        or _hides_aliases(called)
    ):
        yield from node.all_input_nodes
    else:
        for declared, value in arguments(node):
            if declared.alias_info is not None:
                yield from nodes_in(value)


def _inputs_by_storage(graph: Graph) -> list[list[Node]]:
    """Inputs and attributes of a graph, in groups that share storage: tied buffers, say."""
    groups: dict[Any, list[Node]] = {}
    for node in graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            groups.setdefault(_storage(node), []).append(node)
    return [group for key, group in groups.items() if key is not None]


def _storage(node: Node) -> Any:
    owner = node.graph.owning_module
    held = attribute(owner, str(node.target)) if node.op == "get_attr" and owner else None
    value = held if isinstance(held, torch.Tensor) else node.meta.get("val")
    return storage_of(value) if isinstance(value, torch.Tensor) else None


@cache
def _hides_aliases(called: OpOverload) -> bool:
    """A composite may return its operand although its schema promises a fresh tensor."""
    declared = any(result.alias_info is not None for result in called._schema.returns)
    return not declared and (
        is_composite(called) or torch.Tag.maybe_aliasing_or_mutating in called.tags
    )
