"""Say in the payload's terms what a compiled method takes and gives.

Sizes of a program are numbers or SymInts; the file keeps numbers, symbols with their ranges, and
expressions as text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import SymInt, Tensor
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from backend.errors import NotSupported
from backend.program.sizes import Dynamic, Size
from backend.program.tensor_spec import TensorSpec

NUMBERS: dict[type, str] = {
    bool: "bool",
    float: "float",
    int: "int",
    torch.SymBool: "bool",
    torch.SymFloat: "float",
    torch.SymInt: "int",
}
NUMBER_DTYPES = {"int": "int64", "float": "float64", "bool": "bool"}


def input_nodes(program: ExportedProgram) -> list[Node]:
    """The placeholders of the method's own inputs, in order."""
    names = set(program.graph_signature.user_inputs)
    return [n for n in program.graph.nodes if n.op == "placeholder" and n.name in names]


def output_nodes(program: ExportedProgram) -> list[Any]:
    """What the method returns, buffers' new values apart."""
    written = len(program.graph_signature.buffers_to_mutate)
    return list(program.graph.output_node().args[0][written:])


def example_inputs(program: ExportedProgram) -> list[Any]:
    """The recorded values of the inputs, to compile for; one with gaps or overlaps made dense.

    Raises:
        NotSupported: an input that is no tensor.
    """
    return [dense(tensor_value(node)) for node in input_nodes(program)]


def tensor_value(node: Node) -> Tensor:
    """The tensor recorded for an input."""
    value = node.meta["val"]
    if not isinstance(value, Tensor):
        raise NotSupported(
            f'input "{node.name}" is a {type(value).__name__} that changes, not a tensor'
        )
    return value


def dense(value: Tensor) -> Tensor:
    """`value`, or a contiguous one of the same shape when memory would not be used once each.

    The runtime brings every input into the compiled layout, and it can fill dense memory only.
    """
    expected: Any = 1
    for dim in reversed(dim_order(value)):
        if statically_known_true(value.shape[dim] == 1):
            continue
        if not statically_known_true(value.stride(dim) == expected):
            return value.new_empty(value.shape)
        expected = expected * value.shape[dim]
    return value


def dim_order(value: Tensor) -> tuple[int, ...]:
    """The dims of `value`, from the largest stride in the example to the smallest."""
    return tuple(sorted(range(value.dim()), key=lambda dim: (-hint(value.stride()[dim]), dim)))


def hint(size: int | SymInt) -> int:
    """The size in the example that was exported."""
    if isinstance(size, int):
        return size
    known: Any = size.node.hint
    return 1 << 62 if known is None else int(known)


def input_specs(program: ExportedProgram, values: Iterable[Tensor]) -> tuple[TensorSpec, ...]:
    """The specs of the inputs, compiled for `values`."""
    ranges = program.range_constraints
    pairs = zip(input_nodes(program), values, strict=True)
    return tuple(tensor_spec(node.name, value, ranges) for node, value in pairs)


def output_specs(program: ExportedProgram) -> tuple[TensorSpec, ...]:
    """The specs of the outputs."""
    return tuple(
        output_spec(index, out, program) for index, out in enumerate(output_nodes(program))
    )


def output_spec(index: int, output: Any, program: ExportedProgram) -> TensorSpec:
    """The spec of one output, a tensor or a number.

    Raises:
        NotSupported: anything else.
    """
    value = output.meta["val"] if isinstance(output, Node) else output
    name = output.name if isinstance(output, Node) else f"output_{index}"
    if isinstance(value, Tensor):
        return tensor_spec(name, value, program.range_constraints)
    kind = NUMBERS.get(type(value))
    if kind is None:
        raise NotSupported(
            f'output "{name}" is a {type(value).__name__}; return tensors and numbers'
        )
    return TensorSpec(name, NUMBER_DTYPES[kind], (), (), "cpu", kind)


def tensor_spec(name: str, value: Tensor, ranges: dict[Any, ValueRanges[Any]]) -> TensorSpec:
    """The spec of one tensor."""
    return TensorSpec(
        name=name,
        dtype=str(value.dtype).removeprefix("torch."),
        shape=tuple(size_of(size, ranges) for size in value.shape),
        dim_order=dim_order(value),
        device=str(value.device),
    )


def size_of(size: int | SymInt, ranges: dict[Any, ValueRanges[Any]]) -> Size:
    """A number, or a symbol with the range that it was exported with."""
    if isinstance(size, int):
        return size
    expression = size.node.expr
    if expression.is_Integer:
        return int(expression)
    bounds = bound_sympy(expression, {symbol: asked(range_) for symbol, range_ in ranges.items()})
    return Dynamic(str(expression), finite(bounds.lower) or 0, finite(bounds.upper))


def asked(found: ValueRanges[Any]) -> ValueRanges[Any]:
    """The range that the user asked for: a lower bound of 2 is export's own assumption.

    Export specialises sizes 0 and 1, so a dynamic size starts at 2 in its books; like its own
    checks, ours do not hold that against a smaller one.
    """
    return ValueRanges(0, found.upper) if found.lower <= 2 else found


def finite(bound: Any) -> int | None:
    """A bound as a number; None where there is none."""
    return int(bound) if bound.is_Integer else None
