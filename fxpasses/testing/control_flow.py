"""Steps with graphs of their own: conds, nested ones too, and loops.

What a branch is handed it must not write, so its operands are frozen.
"""

from __future__ import annotations

from collections.abc import Sequence

from fxpasses.testing import grammar
from fxpasses.testing.plan import Block
from fxpasses.testing.scope import Scope
from fxpasses.testing.steps import INNER_STEPS, Step


def branch(scope: Scope) -> None:
    """A cond with drawn branches."""
    operands = _operands(scope)
    predicate = scope.apply(grammar.PREDICATES)
    if operands is None or predicate is None:
        return
    blocks = tuple(_block(scope, operands) for _ in range(2))
    true, false = (block.name for block in blocks)
    letters = {f"o{index}": name for index, name in enumerate(operands)}
    given = ", ".join(f"{{{letter}}}" for letter in letters)
    scope.run(
        f"{{flow}}.cond({{p}}, {true}, {false}, ({given},))",
        {**letters, "p": predicate},
        blocks=blocks,
    )
    scope.tensors.pop(predicate)


def loop(scope: Scope) -> None:
    """A while_loop that runs a drawn body twice."""
    operands = _operands(scope)
    if operands is None:
        return
    body = _block(scope, operands, carried=True)
    goes_on = Block(f"goes_on{next(scope.numbers)}", body.parameters, (), "i < 2")
    letters = {f"o{index}": name for index, name in enumerate(operands)}
    given = ", ".join(f"{{{letter}}}.clone()" for letter in letters)
    scope.run(
        f"{{flow}}.while_loop({goes_on.name}, {body.name}, (torch.tensor(0), {given}))[1]",
        letters,
        blocks=(goes_on, body),
    )


def _operands(scope: Scope) -> list[str] | None:
    """A tensor, one like it, and a mask over its dims."""
    found = scope.fill("{a}{b}{m}")
    return list(found.values()) if found else None


def _block(scope: Scope, operands: Sequence[str], carried: bool = False) -> Block:
    """A function of the operands that gives a tensor like the first; a loop's body gives all."""
    names = [f"{kind}{next(scope.numbers)}" for kind in "xym"]
    given = {
        name: scope.tensors[operand].clone() for name, operand in zip(names, operands, strict=True)
    }
    inner = Scope(scope.choose, scope.numbers, given, frozen=True)
    deeper = (branch,) if not carried and scope.oneof([False] * 5 + [True]) else ()
    for _ in range(scope.oneof([1, 2, 3])):
        inner.oneof([*INNER_STEPS, *deeper])(inner)
    first = given[names[0]]
    alike = [
        name
        for name, value in inner.tensors.items()
        if (value.dtype, value.shape) == (first.dtype, first.shape)
    ]
    result = f"{inner.oneof(alike[::-1])}.clone(memory_format=torch.contiguous_format)"
    if carried:
        rest = ", ".join(f"{name}.clone()" for name in names[1:])
        names, result = ["i", *names], f"i + 1, {result}, {rest}"
    return Block(f"f{next(scope.numbers)}", tuple(names), tuple(inner.statements), result)


REGIONS: tuple[Step, ...] = (branch, branch, loop)
