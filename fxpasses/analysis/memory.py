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
from collections.abc import Iterable
from typing import TYPE_CHECKING

from networkx.utils import UnionFind
from torch.fx import Graph, Node

from fxpasses.analysis.aliases import bases, holders_by_storage
from fxpasses.analysis.effects import Effects, effects, may_write, of_operator
from fxpasses.operators import is_higher_order, operator_of

if TYPE_CHECKING:
    Classes = UnionFind[Node]


class Memory:
    """Alias classes and writes of one graph, as it is when this is built.

    Args:
        graph: the graph.
        sharing: groups of its inputs that may share memory, beside those that were traced so.
    """

    def __init__(self, graph: Graph, sharing: Iterable[list[Node]] = ()) -> None:
        self._order: list[Node] = list(graph.nodes)
        self.position = {node: place for place, node in enumerate(self._order)}
        self._effects: dict[Node, Effects] = {}
        self.writers = self._find_writers()
        self._classes: dict[Node, Node] = {}
        self._writes: dict[Node, list[int]] = {}
        if self.writers:
            self._classify(graph, sharing)

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

    def home(self, node: Node) -> Node:
        """A node that stands for all that may share memory with `node`."""
        return self._classes.get(node, node)

    def written(self, operand: Node) -> list[Node]:
        """Every node that may write the memory of `operand`, in order."""
        if not self.writers:
            return []
        return [self._order[place] for place in self._writes.get(self._classes[operand], [])]

    def effects(self, node: Node) -> Effects:
        """The effects of a node; those of control flow, which take long, are kept."""
        return self._effects.get(node) or effects(node)

    def stands_for(self, new: Node, old: Node) -> None:
        """Let `new`, which a rewrite put in the place of `old`, share its memory and its time."""
        self.position[new] = self.position[old]
        if self.writers:
            self._classes[new] = self._classes[old]

    def _classify(self, graph: Graph, sharing: Iterable[list[Node]]) -> None:
        classes: Classes = UnionFind(graph.nodes)
        for node in graph.nodes:
            classes.union(node, *bases(node))
        for group in (*holders_by_storage(graph), *sharing):
            classes.union(*group)
        self._classes = {node: classes[node] for node in graph.nodes}
        for writer in self.writers:
            place = self.position[writer]
            for home in {self._classes[written]: None for written in self._reach(writer)}:
                self._writes.setdefault(home, []).append(place)

    def _find_writers(self) -> list[Node]:
        """The nodes that may write; what an operator may do is looked up once for each."""
        harmless: dict[int, bool] = {}  # by the identity of the target: hashing operators is slow
        found = []
        for node in self._order:
            if node.op in ("placeholder", "get_attr", "output"):
                continue
            known = harmless.get(id(node.target))
            if known is None:
                known = harmless[id(node.target)] = _is_harmless(node)
            if not known:
                does = self._effects[node] = effects(node)
                if does.writes or does.unknown:
                    found.append(node)
        return found

    def _reach(self, writer: Node) -> Iterable[Node]:
        """What a writer may write: what it declares, or else all that it is given or holds."""
        does = self._effects[writer]
        return (writer, *writer.all_input_nodes) if does.unknown else does.writes


def _is_harmless(node: Node) -> bool:
    """Whether no call of what `node` calls can write."""
    called = operator_of(node)
    return not (is_higher_order(node) or may_write(called) or of_operator(called).unknown)
