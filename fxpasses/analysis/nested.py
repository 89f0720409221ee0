"""The numbering of any graph of a program, and what its inputs stand for outside.

    numbering_of(region)    # knows which inputs of the region hold one value

Two inputs of a nested graph hold one value when every call of it gives them one value. An input
that a loop carries must agree on the first turn, and on every next one: that the body, given equal
inputs, returns equal results.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from torch.fx import Node

from fxpasses.analysis.calls import Binding, bindings, carries, graph_of, results_of
from fxpasses.analysis.numbering import Numbering, Table
from fxpasses.regions import Region, placeholders

Numbers = list[Hashable]


class Numberings:
    """The numberings of the regions of one program, as it is; each is made when it is asked for.

    Args:
        shared: number all graphs with one table, so that nodes of two graphs can be compared.
    """

    def __init__(self, shared: bool = False) -> None:
        self._table: Table | None = {} if shared else None
        self._made: dict[int, Numbering] = {}
        self._regions: list[Region] = []  # they stay alive, and so their identities stay theirs

    def of(self, region: Region) -> Numbering:
        """The numbering of `region`, whose callers are numbered first."""
        if id(region) not in self._made:
            self._regions.append(region)
            self._made[id(region)] = self._number(region)
        return self._made[id(region)]

    def _number(self, region: Region) -> Numbering:
        inputs = placeholders(region.graph)
        calls = [self._numbers(*call) for call in region.callers]
        understood = [numbers for numbers in calls if numbers is not None]
        bound: dict[Node, Hashable] = {}
        if calls and len(understood) == len(calls):
            for node, numbers in zip(inputs, zip(*understood, strict=True), strict=True):
                bound[node] = numbers[0] if len(numbers) == 1 else ("each", *numbers)
        sharing = [group for call in region.callers for group in self._sharing(inputs, *call)]
        alone = len(region.callers) <= 1
        return Numbering(region.graph, bound, sharing, self._table, sizes=alone)

    def _numbers(self, caller: Region, operator: Node, operand: Node) -> Numbers | None:
        """The number of each input in one call; None where the call is not understood."""
        bound = bindings(operator, operand)
        if bound is None:
            return None
        outside = self.of(caller)
        numbers = [self._first(binding, operator, outside) for binding in bound]
        body = carries(operator, operand)
        if body is None:
            return numbers
        settled, constant = _settle(numbers, bound, body)
        return [
            number if constant[place] else ("carried", operator, operand, settled[place])
            for place, number in enumerate(numbers)
        ]

    def _first(self, binding: Binding, operator: Node, outside: Numbering) -> Hashable:
        """The number of an input on the first turn."""
        number = outside.key(binding.operand, operator)
        return ("slice", operator, number) if binding.kind == "slice" else number

    def _sharing(
        self, inputs: list[Node], caller: Region, operator: Node, operand: Node
    ) -> Iterator[list[Node]]:
        """Groups of inputs that may share memory in one call."""
        bound = bindings(operator, operand)
        if bound is None or any(binding.kind == "carried" for binding in bound):
            yield inputs
            return
        memory, groups = self.of(caller).memory, dict[Node, list[Node]]()
        for node, binding in zip(inputs, bound, strict=True):
            if isinstance(binding.operand, Node):
                groups.setdefault(memory.home(binding.operand), []).append(node)
        yield from groups.values()


def _settle(numbers: Numbers, bound: list[Binding], body: Node) -> tuple[list[int], list[bool]]:
    """Split the inputs of a loop into classes that stay equal on every turn.

    Returns:
        For each input its class, and whether it holds its first value on every turn.
    """
    classes = _classes(numbers)
    while True:
        following = _next(classes, bound, body)
        finer = _classes(list(zip(classes, following, strict=True)))
        if finer == classes:
            return classes, [
                number == ("input", c) for number, c in zip(following, classes, strict=True)
            ]
        classes = finer


def _classes(numbers: Numbers) -> list[int]:
    """For each number, the place where it occurs first."""
    first: dict[Hashable, int] = {}
    return [first.setdefault(number, place) for place, number in enumerate(numbers)]


def _next(classes: list[int], bound: list[Binding], body: Node) -> Numbers:
    """The number of each input on the next turn, where those of one class are equal now."""
    module = graph_of(body)
    numbers: Numbers = [("input", c) for c in classes]
    if module is None or len(placeholders(module.graph)) != len(numbers):
        return [("unknown", place) for place in range(len(numbers))]
    graph = module.graph
    inner = Numbering(graph, dict(zip(placeholders(graph), numbers, strict=True)), sizes=False)
    output = graph.output_node()
    carried = sum(binding.kind == "carried" for binding in bound)
    results = [inner.key(result, output) for result in results_of(graph)[:carried]]
    return [*results, *numbers[carried:]]
