"""Value numbers: two nodes with one number hold one value, bit for bit.

    numbering = Numbering(graph)
    numbering.number(mask) == numbering.number(other)
    numbering.read(mask, index)    # the number of what `index` reads

Every node gets its number in one walk over the graph: two nodes get the same number when they apply
the same operator that repeats (`fxpasses.analysis.repeats`) to operands with the same numbers and
to equal constants. This is global value numbering (Cocke and Schwartz, 1970); it is linear in the
graph, and has no recursion to overflow on long histories: only nested graphs nest.

A number is the first node that held the value, or a tuple that begins with a word where a node
alone does not say which value is meant.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import torch
from torch.fx import Graph, Node

from fxpasses.analysis.calls import FUNCTIONS, ONCE, Binding, bindings, graph_operands_of, name_of
from fxpasses.analysis.memory import Memory
from fxpasses.analysis.repeats import Facts, constant_key, facts, same_metadata
from fxpasses.operators import is_higher_order, unwrap
from fxpasses.regions import attribute, placeholders
from fxpasses.values import signature_of, value_of

Table = dict[Hashable, Hashable]
_UNSEEN: Any = object()


class Numbering:
    """Value numbers of one graph, as it is when this is built.

    A rewrite keeps values, so the numbers of nodes that stay remain true while a pass rewrites
    the graph. A node made later has no number and equals only itself, unless it `stands_for` one.

    Args:
        graph: the graph.
        inputs: for placeholders, the number of what each stands for.
        sharing: groups of placeholders that may share memory.
        table: numbers known so far; graphs that are numbered with one table can be compared.
        call: the call under way, where the graph is numbered as part of one.
        sizes: a symbolic size is told by its expression; not so in a graph with several callers.
    """

    def __init__(
        self,
        graph: Graph,
        inputs: Mapping[Node, Hashable] | None = None,
        sharing: Iterable[list[Node]] = (),
        table: Table | None = None,
        call: Hashable = None,
        sizes: bool = True,
    ) -> None:
        self.memory = Memory(graph, sharing)
        self.repeats = True
        self._inputs = inputs or {}
        self._numbers: dict[Node, Hashable] = {}
        self._known: Table = {} if table is None else table
        self._call = call
        self._sizes = sizes
        self._facts: dict[int, Facts | None] = {}  # by the identity of the target: hashing is slow
        self._tensors: dict[int, Node] = {}
        numbers, number = self._numbers, self._number
        for node in graph.nodes:
            numbers[node] = number(node)

    def number(self, node: Node) -> Hashable:
        """The value number of `node` when it was made; equal numbers mean equal values."""
        return self._numbers.get(node, node)

    def read(self, operand: Node, reader: Node) -> Hashable:
        """The value number of `operand` as `reader` finds it, after the writes in between."""
        position = self.memory.position
        if operand not in position or reader not in position:
            return ("read", operand, reader) if self.memory.writers else operand
        write = self.memory.last_write(operand, reader)
        return self.number(operand) if write is None else ("written", operand, write, self._call)

    def key(self, value: Any, reader: Node) -> Hashable:
        """An operand of `reader` as part of a key: its number, or a constant with its type."""
        if isinstance(value, Node):
            return self.read(value, reader) if self.memory.writers else self._numbers[value]
        if isinstance(value, list | tuple):
            return tuple([self.key(item, reader) for item in value])
        return constant_key(value)

    def stands_for(self, new: Node, old: Node) -> None:
        """Let `new`, which a rewrite put in the place of `old`, hold its value."""
        self._numbers[new] = self.number(old)
        self.memory.stands_for(new, old)

    def _number(self, node: Node) -> Hashable:
        """A number shared by every node that computes the same, or the node itself."""
        if node.op != "call_function":
            return self._named(node)
        target = node.target
        known = self._facts.get(id(target), _UNSEEN)
        if known is _UNSEEN:
            known = self._facts[id(target)] = facts(unwrap(target))
        if known is None:
            return self._call_of_graphs(node) if is_higher_order(node) else self._itself(node)
        return self._computed(node, known)

    def _computed(self, node: Node, known: Facts) -> Hashable:
        args, kwargs = node.args, node.kwargs
        if (kwargs and not known.names) or not known.repeats(node):
            return self._itself(node)
        if known.size and (size := self._size(node)) is not None:
            return size
        operands = self._operands(node, args, kwargs, known)
        if known.keeps_value and same_metadata(node, args[0]):
            return operands[0]
        key = (known, *operands)
        if known.may_swap(node) and key not in self._known:
            first, second, *rest = operands
            twin = self._known.get((known, second, first, *rest))
            if twin is not None and same_metadata(node, _node_of(twin)):
                return twin
        return self._known.setdefault(key, self._place(node))

    def _operands(self, node: Node, args: Any, kwargs: Any, known: Facts) -> list[Hashable]:
        given = [self.key(value, node) for value in args]
        if not kwargs:
            return [*given, *known.defaults[len(given) :]]
        missing = zip(known.names[len(given) :], known.defaults[len(given) :], strict=True)
        for name, default in missing:
            given.append(self.key(kwargs[name], node) if name in kwargs else default)
        return given

    def _named(self, node: Node) -> Hashable:
        """The number of a placeholder, or of a tensor that the module holds."""
        if node in self._inputs:
            return self._inputs[node]
        owner = node.graph.owning_module
        held = attribute(owner, str(node.target)) if node.op == "get_attr" and owner else None
        if isinstance(held, torch.Tensor):
            first = self._tensors.setdefault(id(held), node)
            if first is not node:
                return self.read(first, node)
        size = self._size(node) if node.op == "placeholder" else None
        return self._place(node) if size is None else size

    def _size(self, node: Node) -> Hashable:
        value = node.meta.get("val")
        symbolic = self._sizes and isinstance(value, torch.SymInt | torch.SymBool)
        return constant_key(value) if symbolic else None

    def _itself(self, node: Node) -> Hashable:
        """The number of a value that the next run of the same graph need not give again."""
        self.repeats = False
        return self._place(node)

    def _place(self, node: Node) -> Hashable:
        return node if self._call is None else ("run", node, self._call)

    def _call_of_graphs(self, node: Node) -> Hashable:
        """The number of a higher-order operator: what its graphs compute from its operands."""
        name = name_of(node)
        if name not in FUNCTIONS or not self.memory.effects(node).pure:
            return self._itself(node)
        graphs = graph_operands_of(node)
        bound = [bindings(node, operand) for operand, _ in graphs]
        if not bound or bound[0] is None or bound.count(bound[0]) < len(bound):
            return self._itself(node)
        operands = tuple(self.key(binding.operand, node) for binding in bound[0])
        once = name in ONCE  # then what the graphs compute from the operands is all that counts
        inside, outside = (operands, None) if once else (_abstract(bound[0]), operands)
        results = tuple(self._results(module, inside, node) for _, module in graphs)
        chosen = self.key(node.args[0], node) if name == "cond" else None
        key = (name, chosen, outside, results, signature_of(value_of(node)))
        return self._known.setdefault(key, self._place(node))

    def _results(self, module: Any, inputs: tuple[Hashable, ...], node: Node) -> Hashable:
        """The numbers of what a nested graph returns for `inputs`, in the call that `node` is."""
        seen = ("results", module, inputs)
        if seen in self._known:
            return self._known[seen]
        graph: Graph = module.graph
        bound = dict(zip(placeholders(graph), inputs, strict=True))
        inner = Numbering(graph, bound, table=self._known, call=(node, self._call), sizes=False)
        output = graph.output_node()
        results = inner.key(output.args[0], output)
        if inner.repeats:
            self._known[seen] = results
        else:
            self.repeats = False
        return results


def _abstract(bound: list[Binding]) -> tuple[Hashable, ...]:
    """Names for the inputs of a loop, which are other values on every turn."""
    return tuple(("input", place, binding.kind) for place, binding in enumerate(bound))


def _node_of(number: Hashable) -> Any:
    """The node that a number was given to first."""
    return number[1] if isinstance(number, tuple) else number
