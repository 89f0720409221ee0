"""A program as a networkx graph, for queries that a text cannot answer.

    graph = inspection.to_networkx()
    networkx.descendants(graph, "index")

Every region is in the one graph. A node is known by its path: `index` in the top graph,
`true_graph_0.index` in a branch. Its attributes:

    operator   "aten.index.Tensor", "placeholder", "output", "cond", ...
    region     path of its graph; "" for the top one
    type       "i64[u0]", or "" where the program records none
    source     "embeddings.py:129", or ""
    text       its line of the graph's text

An edge runs from a value to its reader, with `kind="data"`, and from an operator to the inputs
of each region that it runs, with `kind="calls"`.
"""

from __future__ import annotations

import networkx as nx
from torch.fx import Node

from fxpasses.operators import describe
from fxpasses.printer import node_text, type_text
from fxpasses.program import Program, module_of
from fxpasses.regions import Region, placeholders, regions
from fxpasses.remarks import source_of
from fxpasses.values import value_of


def program_network(program: Program) -> nx.DiGraph[str]:
    """The nodes and edges of every region of `program`."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for region in regions(module_of(program)):
        _add_region(graph, region)
    return graph


def _add_region(graph: nx.DiGraph[str], region: Region) -> None:
    for node in region.graph.nodes:
        graph.add_node(_key(region, node), **_attributes(region, node))
        for value in node.all_input_nodes:
            graph.add_edge(_key(region, value), _key(region, node), kind="data")
    for caller, operator, _ in region.callers:
        for entry in placeholders(region.graph):
            graph.add_edge(_key(caller, operator), _key(region, entry), kind="calls")


def _key(region: Region, node: Node) -> str:
    return f"{region.path}.{node.name}" if region.path else node.name


def _attributes(region: Region, node: Node) -> dict[str, str]:
    value = value_of(node)
    return {
        "operator": describe(node),
        "region": region.path,
        "type": "" if value is None else type_text(value),
        "source": source_of(node),
        "text": node_text(node),
    }
