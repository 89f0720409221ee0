"""Checks after a pass, by level.

* `off`: none;
* `structure`: the graph is well formed and the signature names what the graph has;
* `metadata`: what a pass touched records the value it really has, which neither `graph.lint()`
  nor `ExportedProgram.validate()` looks at, and the graph returns the dtypes, shapes and layouts
  that it returned before;
* `numeric`: outputs, inputs, buffers and parameters equal those of the program before the run,
  bit for bit, over several calls, and
  what a call returned is still the same after the calls that follow.

Each level includes the ones before it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node
from torch.utils._pytree import tree_flatten, tree_map_only

from fxpasses._torch import is_erased, without_symbols
from fxpasses.errors import InvalidOption, VerificationFailed
from fxpasses.fake import Evaluator
from fxpasses.held import written_back
from fxpasses.operators import describe, is_higher_order, operator_of
from fxpasses.program import Program, nested_graphs
from fxpasses.regions import Region, placeholders
from fxpasses.values import signature_of, value_of

LEVELS = ("off", "structure", "metadata", "numeric")
CALLS = 3

Inputs = tuple[tuple[Any, ...], dict[str, Any]]
Contents = dict[Node, tuple[Any, ...]]


@dataclass(frozen=True)
class Snapshot:
    """The nodes of a region, in order, with what each holds; and those of the graphs in it."""

    nodes: Contents
    nested: dict[Graph, Contents]


def rank(level: str) -> int:
    """The rank of a level: 0 for off to 3 for numeric.

    Raises:
        InvalidOption: no such level.
    """
    if level not in LEVELS:
        raise InvalidOption(f"verify={level!r}: expected one of {', '.join(LEVELS)}")
    return LEVELS.index(level)


def snapshot(module: GraphModule) -> Snapshot:
    """What a region and the graphs in it hold, to be compared by identity later."""
    below = {child.graph: contents(child.graph) for _, child in nested_graphs(module)}
    return Snapshot(contents(module.graph), below)


def contents(graph: Graph) -> Contents:
    """What each node calls, on what, and the value it records."""
    return {
        node: (node.target, node.args, node.kwargs, node.meta.get("val")) for node in graph.nodes
    }


def behind(module: GraphModule, before: Snapshot, changed: Sequence[Node], edited: bool) -> str:
    """Where a region changed otherwise than the editor changes it; "" where it did not.

    The editor neither moves a node nor looks into a graph inside the region.
    """
    if not edited and (changed or len(before.nodes) != len(module.graph.nodes)):
        return changed[0].name if changed else "output"
    kept = [node for node in before.nodes if not is_erased(node)]
    now = [node for node in module.graph.nodes if node in before.nodes]
    if now != kept:
        moved = (node for node, was in zip(now, kept, strict=True) if node is not was)
        return str(next(moved).name)
    for name, child in nested_graphs(module):
        held = before.nested.get(child.graph)
        if held is not None and (
            list(held) != list(child.graph.nodes) or touched(child.graph, held)
        ):
            return name
    return ""


def touched(graph: Graph, before: Contents) -> list[Node]:
    """The nodes that are new, call something else, or read what now records another value."""
    changed = {node for node in graph.nodes if _differs(node, before)}
    return [
        node
        for node in graph.nodes
        if node in changed or not changed.isdisjoint(node.all_input_nodes)
    ]


def _differs(node: Node, before: Contents) -> bool:
    old = before.get(node)
    if old is None:
        return True
    target, args, kwargs, value = old
    return not (
        node.target is target
        and node.args == args
        and node.kwargs == kwargs
        and node.meta.get("val") is value
    )


def check_structure(program: Program, region: Region, pass_name: str) -> None:
    """Refuse a graph that torch would refuse, and a signature that names what is not there."""
    try:
        region.graph.lint()
    except RuntimeError as error:
        raise VerificationFailed(pass_name, region.path, "", _first_line(error)) from error
    if isinstance(program, ExportedProgram) and not region.path:
        _check_signature(program, pass_name)


def _check_signature(program: ExportedProgram, pass_name: str) -> None:
    signature = program.graph_signature
    inputs = [node.name for node in placeholders(program.graph)]
    declared = [spec.arg.name for spec in signature.input_specs]
    if inputs != declared:
        raise VerificationFailed(
            pass_name, "", "", f"the graph takes {inputs}, the signature says {declared}"
        )
    results = program.graph.output_node().args[0]
    if len(results) != len(signature.output_specs):
        found, wanted = len(results), len(signature.output_specs)
        raise VerificationFailed(
            pass_name, "", "output", f"the graph returns {found} values, the signature {wanted}"
        )


def check_metadata(
    region: Region, nodes: Sequence[Node], pass_name: str, evaluate: Evaluator
) -> None:
    """Refuse a node of `nodes` whose recorded value differs from what its operator computes."""
    for node in nodes:
        problem = _stale(node, evaluate)
        if problem:
            raise VerificationFailed(pass_name, region.path, node.name, problem)


def _stale(node: Node, evaluate: Evaluator) -> str:
    """What is wrong with the recorded value of `node`; "" when nothing is."""
    if node.op != "call_function" or is_higher_order(node):
        return ""
    try:
        computed = evaluate(operator_of(node), *node.args, **node.kwargs)
    except Exception as error:  # noqa: BLE001  # whatever an operator raises, it cannot run
        return f"{describe(node)} fails on its operands: {_first_line(error)}"
    if computed is None:
        return ""
    found, recorded = signature_of(computed), signature_of(value_of(node))
    if found != recorded:
        found, recorded = without_symbols(found), without_symbols(recorded)
    return "" if found == recorded else f"records {recorded}, computes {found}"


def results_of(program: Program, region: Region) -> list[Any]:
    """The metadata of each value that a region returns; data-dependent sizes aside.

    Where the new value of a buffer lives is the program's own affair.
    """
    results = tree_flatten(region.graph.output_node().args)[0]
    found = [without_symbols(signature_of(value_of(result))) for result in results]
    for place, _ in () if region.path else written_back(program):
        dtype, _, *shape = found[place]
        found[place] = (dtype, *shape)
    return found


def check_results(program: Program, region: Region, before: list[Any], pass_name: str) -> None:
    """Refuse a region that returns values of another dtype, shape or layout than it did."""
    after = results_of(program, region)
    for index, (wanted, found) in enumerate(zip(before, after, strict=False)):
        if wanted != found:
            problem = f"returns {found}, it returned {wanted} before the pass"
            raise VerificationFailed(pass_name, region.path, f"output {index}", problem)


def check_numeric(reference: Program, program: Program, inputs: Inputs, pass_name: str) -> None:
    """Run both programs on copies of `inputs`, several calls, and compare every bit."""
    devices = range(torch.cuda.device_count())
    with torch.random.fork_rng(devices=devices), torch.no_grad():
        runs = zip(_expected(reference, inputs), _found(program, inputs, pass_name), strict=True)
        calls = []
        for call, (wanted, got) in enumerate(runs):
            calls.append((wanted, got))
            _compare(wanted, got, pass_name, f"call {call} differs")
    for call, (wanted, got) in enumerate(calls):  # results that share memory with state change too
        _compare(wanted, got, pass_name, f"call {call} differs after call {len(calls) - 1}")


def _compare(wanted: dict[str, Any], got: dict[str, Any], pass_name: str, what: str) -> None:
    for name, left in wanted.items():
        if not same_bits(left, got[name]):
            raise VerificationFailed(pass_name, "", name, f"{what}{_by(left, got[name])}")


def _found(program: Program, inputs: Inputs, pass_name: str) -> Iterator[dict[str, Any]]:
    try:
        yield from _runs(program, inputs)
    except Exception as error:
        problem = f"does not run any more: {type(error).__name__}: {_first_line(error)}"
        raise VerificationFailed(pass_name, "", "", problem) from error


def copies(inputs: Inputs) -> Inputs:
    """Inputs of their own for one call, sharing memory among themselves as the given ones do."""
    copied: Inputs = copy.deepcopy(tree_map_only(torch.Tensor, torch.Tensor.detach, inputs))
    return copied


def _expected(reference: Program, inputs: Inputs) -> Iterator[dict[str, Any]]:
    try:
        yield from _runs(reference, inputs)
    except Exception as error:
        problem = f"{type(error).__name__}: {_first_line(error)}"
        raise InvalidOption(f"the program does not run on these inputs: {problem}") from error


def _runs(program: Program, inputs: Inputs) -> Iterator[dict[str, Any]]:
    """What each call returns and leaves behind in buffers and inputs, by name."""
    module = program.module() if isinstance(program, ExportedProgram) else program
    module = copy.deepcopy(module)
    for call in range(CALLS):
        torch.manual_seed(call)
        args, kwargs = given = copies(inputs)
        outputs = tree_flatten(module(*args, **kwargs))[0]
        left = {f"output {i}": value for i, value in enumerate(outputs)}
        left |= {f"input {i}": value for i, value in enumerate(tree_flatten(given)[0])}
        left |= {f"buffer {name}": _kept(value) for name, value in module.named_buffers()}
        left |= {f"parameter {name}": _kept(value) for name, value in module.named_parameters()}
        yield left


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")


def _kept(value: torch.Tensor) -> torch.Tensor:
    """A copy of what a program holds, whichever device it holds it on."""
    return value.detach().to("cpu", copy=True)


def same_bits(left: Any, right: Any) -> bool:
    """Whether two values are equal in dtype, layout and every bit; any NaN equals any NaN."""
    if not isinstance(left, torch.Tensor) or not isinstance(right, torch.Tensor):
        return bool(type(left) is type(right) and (left == right or left != left))
    if signature_of(left) != signature_of(right):
        return False
    if left.layout is not torch.strided:
        return same_bits(left.to_dense(), right.to_dense())
    if left.is_complex():
        return same_bits(*(torch.view_as_real(side.resolve_conj()) for side in (left, right)))
    if left.is_floating_point() and left.element_size() == 1:  # float8 has no arithmetic
        return same_bits(left.float(), right.float())
    equal = left == right
    if left.is_floating_point():
        equal &= left.signbit() == right.signbit()
        equal |= left.isnan() & right.isnan()
    return bool(equal.all())


def _by(left: Any, right: Any) -> str:
    if not isinstance(left, torch.Tensor) or not isinstance(right, torch.Tensor):
        return f": {left} against {right}"
    if signature_of(left) != signature_of(right):
        return f": {signature_of(left)} against {signature_of(right)}"
    worst = (left.to(torch.complex128) - right.to(torch.complex128)).abs().max()
    return f" by {worst.item():g}"
