"""What one operator needs from the device before the host can go on.

    what_it_reads(node)    # "the count of mask gt", or "" for nothing

The rules follow ATen's CUDA code: an operator waits when it must know a value to allocate its
result or to choose a path, when it checks an error code, and when it copies between host and
device. A program that was traced on the CPU is taken as moved to the device, with all its tensors;
in one that was traced on a device, a tensor of the CPU is on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from torch._ops import OpOverload
from torch.fx import Node

from fxpasses._torch import always
from fxpasses.analysis.calls import graph_of, name_of, results_of
from fxpasses.operators import argument, is_higher_order, nodes_in, operator_of
from fxpasses.values import is_mask, is_tensor, value_of

Rule = Callable[[Node], str]


def what_it_reads(node: Node) -> str:
    """What `node` needs from the device before the host can go on; "" for nothing."""
    if is_higher_order(node):
        return _predicate(node)
    rule = _rule_of(operator_of(node))
    return rule(node) if rule else ""


@cache
def _rule_of(called: Any) -> Rule | None:
    if not isinstance(called, OpOverload):
        return None
    name = str(called)
    return _RULES.get(name) or _RULES.get(name.rpartition(".")[0])


def _always(what: str) -> Rule:
    return lambda node: f"{what} {node.args[0]}"


def _on_host(node: Any) -> bool:
    return is_tensor(node) and value_of(node).device.type == "cpu"


def _on_device(*nodes: Any) -> bool:
    """Whether one of these is known to live on a device."""
    return any(is_tensor(node) and not _on_host(node) for node in nodes)


def _moved(operands: Iterable[Any], node: Node) -> str:
    """The first operand that has to be copied to the device where `node` computes."""
    there = _on_device(node, node.args[0])
    moved = [operand for operand in operands if there and _on_host(operand)]
    return f"nothing, but copies {moved[0]} to the device" if moved else ""


# Indexing.


def _index(node: Node) -> str:
    indices = nodes_in(argument(node, "indices"))
    masks = [index for index in indices if is_mask(index)]
    return f"the count of mask {masks[0]}" if masks else _moved(indices, node)


def _index_put(node: Node) -> str:
    value, indices = argument(node, "values"), nodes_in(argument(node, "indices"))
    if _fills(node, value, indices):
        return ""
    return _index(node) or _moved([value], node)


def _fills(node: Node, value: Any, indices: list[Node]) -> bool:
    """Whether ATen fills through the mask: one value that the host knows, and one mask."""
    one = _on_host(value) and _on_device(node.args[0]) and value_of(value).numel() == 1
    return one and [is_mask(i) for i in indices] == [True] and not argument(node, "accumulate")


def _known(name: str) -> Rule:
    """The value of a tensor argument, which is a number where it lives on the host."""

    def rule(node: Node) -> str:
        value = argument(node, name)
        known = not isinstance(value, Node) or (_on_host(value) and _on_device(node.args[0]))
        return "" if known else f"the value of {value}"

    return rule


# Copies.


def _copy(node: Node) -> str:
    return "" if _asynchronous(node) else _crosses(node.args[0], node)


def _copy_into(node: Node) -> str:
    return "" if _asynchronous(node) else _crosses(node.args[1], node.args[0])


def _asynchronous(node: Node) -> bool:
    return bool(argument(node, "non_blocking"))


def _crosses(source: Any, result: Any) -> str:
    if not (is_tensor(source) and is_tensor(result)) or _on_host(source) == _on_host(result):
        return ""
    if _on_host(source):
        return f"nothing, but copies {source} to the device"
    return f"the elements of {source}, to copy them to the host"


def _scalars(node: Node) -> str:
    return _moved(node.args, node)


# What depends on an argument.


def _unless(name: str, what: str) -> Rule:
    """It waits unless the argument `name` is given."""
    return lambda node: "" if argument(node, name) is not None else what


def _checked(node: Node) -> str:
    return f"the error code for {node.args[0]}" if argument(node, "check_errors") else ""


def _histogram(node: Node) -> str:
    given = argument(node, "min") != argument(node, "max")
    return "" if given else f"the range of {node.args[0]}"


def _classes(node: Node) -> str:
    return f"the largest value of {node.args[0]}" if argument(node, "num_classes") == -1 else ""


def _drawn(node: Node) -> str:
    """Drawing many with replacement checks nothing."""
    many = argument(node, "replacement") and argument(node, "num_samples") != 1
    return "" if many else f"whether {node.args[0]} is a distribution"


def _membership(node: Node) -> str:
    """Many elements are sorted, and the distinct ones counted."""
    elements, tests = (value_of(operand) for operand in node.args[:2])
    if argument(node, "assume_unique"):
        return ""
    if isinstance(elements.numel(), int) and always(
        tests.numel() < int(10 * elements.numel() ** 0.145)
    ):
        return ""
    return f"the count of distinct values in {node.args[0]}"


# Control flow.


def _predicate(node: Node) -> str:
    if name_of(node) == "cond":
        predicate, what = node.args[0], f"the predicate {node.args[0]}"
    elif name_of(node) == "while_loop":
        condition = graph_of(node.args[0])
        predicate = results_of(condition.graph)[0] if condition else None
        what = "the loop's condition, on every turn"
    else:
        return ""
    if isinstance(predicate, Node) and not is_tensor(predicate):  # a number, known to the host
        return ""
    return "" if _on_host(predicate) and _on_device(*node.all_input_nodes) else what


def _rules(names: str, rule: Rule) -> dict[str, Rule]:
    return {f"aten.{name}": rule for name in names.split()}


# By operator, or by operator and overload.
_RULES: dict[str, Rule] = {
    **_rules("index.Tensor _unsafe_index", _index),
    **_rules("index_put index_put_ _index_put_impl_ _unsafe_index_put", _index_put),
    **_rules("nonzero nonzero_numpy argwhere where.default", _always("the count of")),
    **_rules("masked_select combinations", _always("the count of the mask over")),
    **_rules(
        "unique_consecutive unique_dim unique_dim_consecutive _unique _unique2",
        _always("the count of distinct values in"),
    ),
    **_rules("_local_scalar_dense item is_nonzero", _always("the value of")),
    **_rules("equal allclose", _always("every element of")),
    **_rules("bincount", _always("the largest value of")),
    **_rules("histc _histc", _histogram),
    **_rules("one_hot", _classes),
    **_rules("isin.Tensor_Tensor", _membership),
    **_rules("multinomial", _drawn),
    **_rules("normal.float_Tensor", lambda node: f"the smallest value of {node.args[1]}"),
    **_rules("normal.Tensor_Tensor", lambda node: f"the smallest value of {node.args[1]}"),
    **_rules(
        "repeat_interleave.Tensor repeat_interleave.self_Tensor",
        _unless("output_size", "the sum of the repeats"),
    ),
    **_rules("masked_fill.Tensor masked_fill_.Tensor", _known("value")),
    **_rules("index_fill.int_Tensor index_fill_.int_Tensor", _known("value")),
    **_rules("linspace.Tensor_Tensor linspace.Tensor_Scalar", _known("start")),
    **_rules("linspace.Scalar_Tensor", _known("end")),
    **_rules("_to_copy to.device to.dtype_layout to.other to.dtype to.prim_Device", _copy),
    **_rules("copy copy_", _copy_into),
    **_rules("where.self", _scalars),
    **_rules(
        "linalg_cholesky cholesky linalg_inv inverse linalg_solve linalg_lu_factor linalg_eigh "
        "_linalg_eigh linalg_eigvalsh linalg_eig linalg_eigvals linalg_svd _linalg_svd "
        "linalg_svdvals linalg_pinv linalg_matrix_rank linalg_lstsq",
        _always("the error code for"),
    ),
    **_rules(
        "linalg_cholesky_ex linalg_inv_ex linalg_solve_ex _linalg_solve_ex linalg_lu_factor_ex "
        "linalg_ldl_factor_ex",
        _checked,
    ),
    **_rules("linalg_matrix_exp matrix_exp", _always("the norm of")),
    **_rules("ctc_loss.Tensor _ctc_loss.Tensor", _always("the lengths for")),
    **_rules("embedding_renorm_", _always("the count of distinct rows read from")),
    **_rules("_to_sparse to_sparse _coalesce coalesce", _always("the count of")),
}
