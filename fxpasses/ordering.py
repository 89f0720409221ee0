"""In which order passes run: declared by them, solved here, explained when it cannot be.

Constraints name passes, never objects. The order is stable: what no constraint moves stays where
it was listed. A pass may be listed more than once:

* `a before b`: some a comes ahead of the first b;
* `a after b`: some a comes behind the last b;
* `a requires b`: the pipeline holds b, and its first b comes ahead of the first a.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import networkx as nx

from fxpasses.errors import ConflictingPasses, MissingRequirement, OrderingCycle
from fxpasses.registry import Pass

Constraint = tuple[int, int, str]

if TYPE_CHECKING:
    Ordering = nx.DiGraph[int]


def order(passes: Sequence[Pass], canonical: Callable[[str], str]) -> list[Pass]:
    """`passes` in an order that satisfies what they declare.

    Args:
        passes: as listed; repeats are legal.
        canonical: the registered name for a name or alias, raising `UnknownPass` for others.

    Raises:
        MissingRequirement, ConflictingPasses, OrderingCycle.
    """
    graph: Ordering = nx.DiGraph()
    graph.add_nodes_from(range(len(passes)))
    for earlier, later, declared in _constraints(passes, canonical):
        graph.add_edge(earlier, later, declared=declared)
    try:
        return [passes[i] for i in nx.lexicographical_topological_sort(graph, key=int)]
    except nx.NetworkXUnfeasible:
        raise OrderingCycle(_explain(graph, passes)) from None


def _constraints(passes: Sequence[Pass], canonical: Callable[[str], str]) -> Iterator[Constraint]:
    """Edges between positions in the list, each with the words of who declared it."""
    places: dict[str, list[int]] = {}
    for place, pass_ in enumerate(passes):
        places.setdefault(pass_.name, []).append(place)
    for name, mine in places.items():
        yield from _in_listed_order(name, mine)
        yield from _declared_by(passes[mine[0]], places, canonical)


def _in_listed_order(name: str, places: list[int]) -> Iterator[Constraint]:
    for earlier, later in itertools.pairwise(places):
        yield earlier, later, f"{name} is listed again"


def _declared_by(
    pass_: Pass, places: dict[str, list[int]], canonical: Callable[[str], str]
) -> Iterator[Constraint]:
    name, mine = pass_.name, places[pass_.name]
    for other in map(canonical, pass_.conflicts):
        if other in places:
            raise ConflictingPasses(f"{name} conflicts with {other}; drop one of them")
    for other in map(canonical, pass_.requires):
        if other not in places:
            raise MissingRequirement(
                f"{name} requires {other}, which the pipeline does not hold; add it"
            )
        yield places[other][0], mine[0], f"{name} requires {other}"
    for other in map(canonical, pass_.before):
        if other in places:
            yield mine[0], places[other][0], f"{name} declares before={other}"
    for other in map(canonical, pass_.after):
        if other in places:
            yield places[other][-1], mine[-1], f"{name} declares after={other}"


def _explain(graph: Ordering, passes: Sequence[Pass]) -> str:
    edges = [
        (passes[a].name, passes[b].name, graph.edges[a, b]["declared"])
        for a, b in nx.find_cycle(graph)
    ]
    path = " -> ".join([edges[0][0], *(later for _, later, _ in edges)])
    return f"no order satisfies {path}: " + "; ".join(declared for _, _, declared in edges)
