"""In which order passes run: declared by them, solved here, explained when it cannot be.

Constraints name passes, never objects. The order is stable: what no constraint moves stays where
it was listed. A pass may be listed more than once:

* `a before b`: some a comes ahead of the first b;
* `a after b`: some a comes behind the last b;
* `a requires b`: the pipeline holds b, and its first b comes ahead of the first a.

A group that repeats until nothing changes moves as one; inside it the same rules hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import networkx as nx

from fxpasses.errors import ConflictingPasses, MissingRequirement, OrderingCycle
from fxpasses.fixpoint import Fixpoint, Item, flatten
from fxpasses.registry import Pass

Canonical = Callable[[str, str], str]
Constraint = tuple[int, int, str]

if TYPE_CHECKING:
    Ordering = nx.DiGraph[int]


def order(items: Sequence[Item], canonical: Canonical) -> list[Item]:
    """`items` in an order that satisfies what their passes declare.

    Args:
        items: as listed; repeats are legal.
        canonical: the registered name for a name or alias and the pass that names it, raising
            `UnknownPass` where there is none.

    Raises:
        MissingRequirement: a pass requires one that is not listed.
        ConflictingPasses: two passes that do not go together are listed.
        OrderingCycle: the constraints contradict each other.
    """
    _check_presence(items, canonical)
    settled = [_order_inside(item, canonical) for item in items]
    return [settled[place] for place in _places([_members(item) for item in settled], canonical)]


def _check_presence(items: Sequence[Item], canonical: Canonical) -> None:
    listed = {pass_.name: pass_ for pass_ in flatten(items)}
    for name, pass_ in listed.items():
        for other in _named(pass_, pass_.conflicts, canonical):
            if other in listed:
                raise ConflictingPasses(f"{name} conflicts with {other}; drop one of them")
        for other in _named(pass_, pass_.requires, canonical):
            if other not in listed:
                raise MissingRequirement(f"{name} requires {other}; add it to the pipeline")


def _order_inside(item: Item, canonical: Canonical) -> Item:
    if not isinstance(item, Fixpoint):
        return item
    places = _places([(pass_,) for pass_ in item.passes], canonical)
    return Fixpoint(tuple(item.passes[place] for place in places), item.limit)


def _named(pass_: Pass, names: Sequence[str], canonical: Canonical) -> list[str]:
    return [canonical(name, pass_.name) for name in names]


def _members(item: Item) -> tuple[Pass, ...]:
    return item.passes if isinstance(item, Fixpoint) else (item,)


def _places(groups: Sequence[tuple[Pass, ...]], canonical: Canonical) -> list[int]:
    """The positions of `groups` in an order that satisfies what their members declare."""
    graph: Ordering = nx.DiGraph()
    graph.add_nodes_from(range(len(groups)))
    for earlier, later, declared in _constraints(groups, canonical):
        graph.add_edge(earlier, later, declared=declared)
    try:
        return list(nx.lexicographical_topological_sort(graph, key=int))
    except nx.NetworkXUnfeasible:
        raise OrderingCycle(_explain(graph, groups)) from None


def _constraints(groups: Sequence[tuple[Pass, ...]], canonical: Canonical) -> Iterator[Constraint]:
    """Edges between positions, each with the words of who declared it."""
    places: dict[str, list[int]] = {}
    passes: dict[str, Pass] = {}
    for place, members in enumerate(groups):
        for pass_ in members:
            places.setdefault(pass_.name, []).append(place)
            passes[pass_.name] = pass_
    for name, mine in places.items():
        repeats = [(a, b, f"{name} is listed again") for a, b in itertools.pairwise(mine)]
        for edge in (*repeats, *_declared_by(passes[name], places, canonical)):
            if edge[0] != edge[1]:
                yield edge


def _declared_by(
    pass_: Pass, places: dict[str, list[int]], canonical: Canonical
) -> Iterator[Constraint]:
    name, mine = pass_.name, places[pass_.name]
    for other in _named(pass_, pass_.requires, canonical):
        if other in places:
            yield places[other][0], mine[0], f"{name} requires {other}"
    for other in _named(pass_, pass_.before, canonical):
        if other in places:
            yield mine[0], places[other][0], f"{name} declares before={other}"
    for other in _named(pass_, pass_.after, canonical):
        if other in places:
            yield places[other][-1], mine[-1], f"{name} declares after={other}"


def _explain(graph: Ordering, groups: Sequence[tuple[Pass, ...]]) -> str:
    """The cycle as a path of names, and who declared each of its edges."""
    names = ["+".join(pass_.name for pass_ in members) for members in groups]
    edges = [(a, b, graph.edges[a, b]["declared"]) for a, b in nx.find_cycle(graph)]
    path = " -> ".join([names[edges[0][0]], *(names[later] for _, later, _ in edges)])
    return f"no order satisfies {path}: " + "; ".join(declared for _, _, declared in edges)
