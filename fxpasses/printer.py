"""A graph as text: one node a line, nested regions indented under the operator that runs them.

    %mask: bool[2, 16] = input
    %index: i64[u0] = aten.index.Tensor(%ids, [%mask])  # embeddings.py:129
    return %index

The text says what a node computes, of which dtype and shape, and which source line asked for it;
symbolic sizes keep their names. Equal graphs have equal texts, so a plain line diff of two texts
is a diff of the graphs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind
from torch.fx import GraphModule, Node

from fxpasses.operators import describe, is_higher_order
from fxpasses.program import Program, module_of
from fxpasses.regions import attribute
from fxpasses.remarks import source_of
from fxpasses.values import sizes, value_of

_INDENT = "  "
_SHORT_KINDS = {"bfloat": "bf", "float": "f", "complex": "c", "uint": "u", "int": "i"}


@dataclass(frozen=True)
class _Roles:
    """What inputs of the top graph hold, by name, and what outputs update, by position."""

    held: dict[str, str] = field(default_factory=dict)
    written: dict[int, str] = field(default_factory=dict)


def program_text(program: Program) -> str:
    """The whole program; inputs say which parameter, buffer or constant they hold."""
    return "\n".join(_region_lines(module_of(program), _roles_of(program), seen=set()))


def region_text(module: GraphModule) -> str:
    """One graph alone, without the regions nested in it."""
    return "\n".join(
        line for node in module.graph.nodes for line in _node_lines(node, module, _Roles())
    )


def text_diff(before: str, after: str) -> str:
    """What changed between two texts, as a unified diff; "" when nothing did."""
    lines = unified_diff(before.splitlines(), after.splitlines(), "before", "after", lineterm="")
    return "\n".join(lines)


def node_text(node: Node) -> str:
    """The line of one node, without its source comment."""
    return _line(node, _Roles())


def type_text(value: Any) -> str:
    """The type of a recorded value: `f32[2, s0]`, `int(u0)`, `(f32[2], i64[2])`."""
    if isinstance(value, torch.Tensor):
        return f"{dtype_text(value.dtype)}[{', '.join(map(str, sizes(value)))}]"
    if isinstance(value, list | tuple):
        return f"({', '.join(map(type_text, value))})"
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return f"{type(value).__name__.removeprefix('Sym').lower()}({value})"
    return type(value).__name__


def dtype_text(dtype: torch.dtype) -> str:
    """`f32` for torch.float32, `bf16`, `i64`, `bool`; rarer dtypes keep their names."""
    name = str(dtype).removeprefix("torch.")
    kind = name.rstrip("0123456789")
    return _SHORT_KINDS[kind] + name[len(kind) :] if kind in _SHORT_KINDS else name


def _region_lines(module: GraphModule, roles: _Roles, seen: set[GraphModule]) -> Iterator[str]:
    for node in module.graph.nodes:
        yield from _node_lines(node, module, roles)
        for operand in _graph_operands(node, module):
            yield from _nested_lines(operand, module, seen)


def _nested_lines(operand: Node, module: GraphModule, seen: set[GraphModule]) -> Iterator[str]:
    nested = attribute(module, str(operand.target))
    if nested in seen:
        yield f"{_INDENT}{operand.name}: as above"
        return
    seen.add(nested)
    yield f"{_INDENT}{operand.name}:"
    yield from (_INDENT * 2 + line for line in _region_lines(nested, _Roles(), seen))


def _graph_operands(node: Node, module: GraphModule) -> list[Node]:
    return [n for n in node.all_input_nodes if is_higher_order(node) and _is_graph(n, module)]


def _is_graph(node: Node, module: GraphModule) -> bool:
    return node.op == "get_attr" and isinstance(attribute(module, str(node.target)), GraphModule)


def _node_lines(node: Node, module: GraphModule, roles: _Roles) -> Iterator[str]:
    if not _is_graph(node, module):  # a graph operand is printed under the operator that runs it
        source = source_of(node)
        yield _line(node, roles) + (f"  # {source}" if source else "")


def _line(node: Node, roles: _Roles) -> str:
    if node.op == "output":
        return f"return {_results(node.args[0], roles)}"
    value = value_of(node)
    type_ = f": {type_text(value)}" if value is not None else ""
    return f"%{node.name}{type_} = {_call(node, roles)}"


def _call(node: Node, roles: _Roles) -> str:
    if node.op == "placeholder":
        return roles.held.get(node.name, "input")
    if node.op == "get_attr":
        return f"constant {node.target}"
    operator = describe(node) if node.op == "call_function" else f"{node.op} {node.target}"
    keywords = [f"{key}={_argument(value)}" for key, value in node.kwargs.items()]
    return f"{operator}({', '.join([*map(_argument, node.args), *keywords])})"


def _argument(value: Any) -> str:
    if isinstance(value, Node):
        return f"%{value.name}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_argument, value))}]"
    if isinstance(value, torch.dtype):
        return dtype_text(value)
    if isinstance(value, torch.device | torch.layout | torch.memory_format):
        return str(value).removeprefix("torch.")
    return repr(value)


def _results(values: Any, roles: _Roles) -> str:
    results = values if isinstance(values, list | tuple) else [values]
    written = [f" -> {roles.written[i]}" if i in roles.written else "" for i in range(len(results))]
    return ", ".join(_argument(value) + into for value, into in zip(results, written, strict=True))


def _roles_of(program: Program) -> _Roles:
    if not isinstance(program, ExportedProgram):
        return _Roles()
    signature = program.graph_signature
    held = {
        spec.arg.name: f"{spec.kind.name.lower().replace('_', ' ')} {spec.target}"
        for spec in signature.input_specs
        if spec.target is not None
    }
    written = {
        place: spec.target
        for place, spec in enumerate(signature.output_specs)
        if spec.kind is not OutputKind.USER_OUTPUT and spec.target is not None
    }
    return _Roles(held, written)
