"""The steps that a random program is drawn from: each adds lines to a `Scope`.

`copy` is the heart: picks of a mask that are put through the same mask, or nearly the same, with
something in between now and then. The other steps make what it works on, and get in its way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxpasses.testing import grammar
from fxpasses.testing.scope import Scope

Step = Callable[[Scope], Any]


def compute(scope: Scope) -> None:
    """A tensor from others."""
    scope.apply(scope.oneof([grammar.COPIES, grammar.VIEWS]), a=_anything(scope))


def compare(scope: Scope) -> None:
    """A mask."""
    scope.apply(scope.oneof([grammar.COMPARISONS, grammar.MASKS]))


def write(scope: Scope, name: str | None = None) -> None:
    """A write in place."""
    name = name or scope.oneof(list(scope.tensors))
    if scope.may_write(name):
        scope.apply(grammar.WRITES, gives=False, a=name)


def check(scope: Scope) -> None:
    """A check that always holds."""
    scope.apply(grammar.CHECKS, gives=False)


def copy(scope: Scope) -> None:
    """Picks of a mask, put through a mask that is the same, or nearly."""
    a = destination(scope)
    masks = scope.candidates("m", {"a": a})
    sources = scope.candidates("b", {"a": a})
    if not masks or not sources:
        return
    m, b = scope.oneof(masks), scope.oneof(sources)
    n = twin(scope, m)
    if scope.oneof([False] * 9 + [True]):
        scope.apply(grammar.MIXED, gives=False, a=a, b=b, m=m, n=n)
        return
    p = scope.apply(grammar.PICKS, b=b, n=n)
    if p is None:
        return
    scope.picks[p] = (b, n)
    if scope.oneof([False] * 4 + [True]):
        p = disturb(scope, p, [a, b, m, n])
    put(scope, grammar.PUTS, a=a, m=m, p=p)


def disturb(scope: Scope, p: str, names: list[str]) -> str:
    """Something between the pick and the put that may make the two differ."""
    kind = scope.oneof(["write", "change", "check", "write picks"])
    if kind == "write":
        write(scope, scope.oneof(names))
    elif kind == "write picks":
        scope.apply(grammar.WRITES, gives=False, a=p)
    elif kind == "check":
        scope.apply(grammar.COUNT_CHECKS, gives=False, p=p, m=names[-1])
    elif changed := scope.apply(grammar.CHANGED_PICKS, p=p):
        scope.picks[changed] = scope.picks[p]
        return changed
    return p


def fill(scope: Scope) -> None:
    """One value through a mask."""
    put(scope, grammar.FILLS, a=destination(scope))


def put(scope: Scope, texts: Sequence[str], **known: str) -> None:
    """A line of `texts`, in place or with a value, whichever it is."""
    text = scope.oneof(texts)
    in_place = "=" in text.replace("dtype=", "") or "_(" in text
    if in_place and not scope.may_write(known["a"]):
        return
    operands = scope.fill(text, **known)
    if operands is not None:
        scope.run(text, operands, gives=not in_place)


def destination(scope: Scope) -> str:
    """What is written: mostly a fresh copy, or a tensor that others may alias."""
    name = _anything(scope)
    fresh = scope.oneof(
        ["{a}.clone()", "{a}.clone()", "", grammar.COPIES[4], "{a}.view({a}.shape)"]
    )
    return (fresh and scope.run(fresh, {"a": name})) or name


def _anything(scope: Scope) -> str:
    """Any tensor; now and then a mask as data."""
    masks = scope.oneof([False] * 7 + [True])
    return scope.oneof(scope.candidates("m" if masks else "a", {}))


def twin(scope: Scope, m: str) -> str:
    """A mask that picks what `m` picks, or as many elements; mostly the same."""
    kind = scope.oneof(["itself"] * 4 + ["again"] * 3 + ["same"] * 2 + ["other"])
    if kind == "again":
        return again(scope, m, scope.oneof([1, 2, 3]))
    if kind == "itself":
        return m
    texts = grammar.SAME_MASKS if kind == "same" else grammar.OTHER_MASKS
    return scope.apply(texts, m=m) or m


def again(scope: Scope, name: str, depth: int) -> str:
    """The value computed once more from its history: the same, unless it draws or was written."""
    definition = scope.definitions.get(name)
    if definition is None or depth == 0 or definition.blocks:
        return name
    operands = {k: again(scope, other, depth - 1) for k, other in definition.operands.items()}
    if {"m", "n"} <= set(operands) and scope.oneof([False, True]):
        operands["m"], operands["n"] = operands["n"], operands["m"]
    return scope.run(definition.text, operands) or name


INNER_STEPS: tuple[Step, ...] = (copy, copy, copy, fill, compute, compare)
STEPS: tuple[Step, ...] = (
    *[copy] * 5,
    fill,
    fill,
    compute,
    compute,
    compare,
    compare,
    write,
    check,
)
