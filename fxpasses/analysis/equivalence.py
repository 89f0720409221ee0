"""When do two nodes hold the same value, bit for bit?

    equivalent(mask_a, mask_b)             # true, or false with .reason
    equivalent(mask_a, mask_b, program)    # inside control flow too, and across it

The answer compares value numbers (`fxpasses.analysis.numbering`). Two nodes are equivalent when
they apply the same operator to equivalent operands and to equal constants: 1, 1.0 and True are
three constants. An input of a `torch.cond` branch stands for the operand outside, and two conds on
one predicate with equivalent branches are equivalent.

What stays apart: two draws of random numbers, reads on different sides of a write, the results of
operators with effects or whose order of atomic updates is free on a GPU, scalars read from a
tensor, and anything computed from strides. Equivalent tensors have equal layouts too, because a
reduction rounds by layout.
"""

from __future__ import annotations

from collections.abc import Callable

from torch.fx import Node
from torch.utils._pytree import tree_leaves

from fxpasses.analysis.nested import Numberings
from fxpasses.analysis.numbering import Numbering
from fxpasses.analysis.repeats import facts
from fxpasses.collector import paused
from fxpasses.errors import InvalidProgram
from fxpasses.operators import describe, is_higher_order, operator_of
from fxpasses.program import Program, module_of
from fxpasses.regions import regions
from fxpasses.verdict import YES, Verdict, no

Find = Callable[[Node], Numbering]


def equivalent(left: Node, right: Node, within: Program | Numbering | None = None) -> Verdict:
    """Whether two nodes were made with the same value, bit for bit.

    Args:
        left: a node.
        right: another node.
        within: the program that holds both. It is needed to tell what the inputs of a nested
            graph stand for; without it both nodes must be of one graph, whose inputs are taken to
            differ. Or that graph's numbering, where the caller has one already.

    Returns:
        A true verdict, or a false one whose `reason` names the first place where they part. In a
        graph that runs more than once the verdict holds for one and the same run.

    Raises:
        InvalidProgram: `within` is no program, or one of the nodes is in none of its graphs.
    """
    if left is right:
        return YES
    if left.graph is not right.graph and (within is None or isinstance(within, Numbering)):
        return no(
            f"{left} and {right} belong to different graphs; "
            "equivalent(left, right, program) compares across the graphs of a program"
        )
    with paused():
        find = _finder(left, right, within)
        if find(left).number(left) == find(right).number(right):
            return YES
        return no(_difference(left, right, find))


def _finder(left: Node, right: Node, within: Program | Numbering | None) -> Find:
    """How to get the numbering of a node."""
    if within is None or isinstance(within, Numbering):
        numbering = within or Numbering(left.graph)
        return lambda _: numbering
    found = {region.graph: region for region in regions(module_of(within))}
    for node in (left, right):
        if node.graph not in found:
            raise InvalidProgram(
                f"{node} is in no graph of the program; give the one that holds it"
            )
    numberings = Numberings(shared=True)
    return lambda node: numberings.of(found[node.graph])


def _difference(left: Node, right: Node, find: Find) -> str:
    """Follow the first operand that differs until two nodes differ by themselves."""
    while True:
        if operator_of(left) != operator_of(right) or operator_of(left) is None:
            return f"{left} ({describe(left)}) and {right} ({describe(right)}) are different values"
        known = facts(operator_of(left))
        alike = known is not None and known.repeats(left) and known.repeats(right)
        if not alike and not is_higher_order(left):
            return f"{left} and {right} are two runs of {describe(left)}, which may differ"
        pairs = zip(_inputs(left), _inputs(right), strict=False)
        parted = [(a, b) for a, b in pairs if find(a).read(a, left) != find(b).read(b, right)]
        if not parted:
            return _same_operands(left, right)
        a, b = parted[0]
        if find(a).number(a) == find(b).number(b):
            return _write_between(a, b, left, right, find)
        left, right = a, b


def _inputs(node: Node) -> list[Node]:
    """The operands that are values: the graphs of control flow are compared by what they return."""
    leaves = [leaf for leaf in tree_leaves((node.args, node.kwargs)) if isinstance(leaf, Node)]
    return [leaf for leaf in leaves if not (is_higher_order(node) and leaf.op == "get_attr")]


def _same_operands(left: Node, right: Node) -> str:
    if is_higher_order(left):
        return f"the graphs of {left} and {right} ({describe(left)}) may give different results"
    return f"{left} and {right} apply {describe(left)} with different constants"


def _write_between(a: Node, b: Node, left: Node, right: Node, find: Find) -> str:
    write = find(a).memory.last_write(a, left) or find(b).memory.last_write(b, right)
    return f"{left} and {right} read {a} on different sides of a write by {write}"
