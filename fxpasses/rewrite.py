"""A rewrite is data: what it looks for, named guards, what it puts there.

    @register_pass("acme.square")
    @dataclass(frozen=True)
    class Square(RewritePass):
        \"\"\"Write x ** 2 as x * x.\"\"\"

        pattern = op(aten.pow.Tensor_Scalar, var("base"), var("exponent"))

        @guard
        def squares(self, node, match, editor):
            return YES if match["exponent"] == 2 else no(f"the exponent is {match['exponent']}")

        def rewrite(self, node, match, editor):
            with editor.at(node):
                new = editor.call(aten.mul.Tensor, match["base"], match["base"])
            editor.replace(node, new)
            return "x ** 2 became x * x"

Each node that calls the pattern's root operator is tried. A pass whose question is no pattern
names its `targets` and defines `match`, which answers what the rewrite needs, or None for "not
this kind at all". Then each guard answers yes or a reason, in the order they are written. The
first refusal becomes a Missed remark that carries the guard's name and reason; a test can switch
a guard off by that name and see what breaks.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from torch.fx import Node

from fxpasses._torch import is_erased
from fxpasses.editor import Editor
from fxpasses.errors import InvalidPass
from fxpasses.patterns import Call, Pattern
from fxpasses.registry import Pass
from fxpasses.verdict import Verdict

G = TypeVar("G", bound=Callable[..., Verdict])


def guard(method: G) -> G:
    """Mark a method of a `RewritePass` as a guard; its name is the guard's name.

    It is called as `guard(node, match, editor)` and returns `YES` or `no(reason)`.
    """
    method.__fx_guard__ = True  # type: ignore[attr-defined]  # functions take attributes
    return method


@dataclass(frozen=True)
class RewritePass(Pass):
    """A pass that tries one rewrite on every node that calls one of `targets`.

    Class attributes:
        pattern: what to look for; its root operators are the targets.
        skipped: guards that are switched off.
    """

    counts_rewrites: ClassVar[bool] = True
    pattern: ClassVar[Pattern | None] = None
    skipped: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if isinstance(cls.pattern, Call):
            cls.targets = cls.pattern.targets

    @classmethod
    def check_definition(cls) -> None:
        super().check_definition()
        if not cls.targets:
            raise InvalidPass(f"{cls.__name__} looks for nothing: give it a pattern, or targets")

    @classmethod
    def guards(cls) -> list[str]:
        """The names of the guards, base classes first, in the order they are written."""
        names = (
            name
            for base in reversed(cls.__mro__)
            for name, value in vars(base).items()
            if _is_guard(value)
        )
        return list(dict.fromkeys(names))

    def match(self, node: Node, editor: Editor) -> Any:
        """What the rewrite needs to know about `node`, or None when it is of another kind."""
        if self.pattern is None:
            raise InvalidPass(f"{type(self).__name__} has no pattern and no match(node, editor)")
        return self.pattern.match(node)

    def rewrite(self, node: Node, match: Any, editor: Editor) -> str:
        """Make the change through `editor` and say in one clause what was done."""
        raise InvalidPass(f"{type(self).__name__} does not define rewrite(node, match, editor)")

    def run(self, editor: Editor) -> None:
        guards = [name for name in self.guards() if name not in self.skipped]
        for node in editor.find(*self.targets):
            if not is_erased(node):
                editor.node = node
                editor.tried += 1
                if (match := self.match(node, editor)) is not None:
                    editor.matched += 1
                    self._try(node, match, editor, guards)

    def without(self, *guards: str) -> RewritePass:
        """This pass with some guards switched off: unsound, and what a test of a guard needs.

        Raises:
            InvalidPass: it has no such guard.
        """
        for name in guards:
            if name not in self.guards():
                raise InvalidPass(
                    f"{self.name} has no guard {name!r}; "
                    f"it has: {', '.join(self.guards()) or 'none'}"
                )
        weakened = copy.copy(self)
        object.__setattr__(weakened, "skipped", self.skipped | set(guards))
        return weakened

    def _try(self, node: Node, match: Any, editor: Editor, guards: Sequence[str]) -> None:
        for name in guards:
            verdict = getattr(self, name)(node, match, editor)
            if not isinstance(verdict, Verdict):
                raise InvalidPass(
                    f"guard {self.name}.{name} returned {verdict!r}: return YES or no(reason)"
                )
            if not verdict:
                editor.missed(node, name, verdict.reason)
                return
        if editor.may_rewrite():
            edits = editor.edits
            done: Any = self.rewrite(node, match, editor)
            if editor.edits == edits or not (isinstance(done, str) and done):
                what = "changed nothing" if editor.edits == edits else f"returned {done!r}"
                raise InvalidPass(f"{self.name}.rewrite of {node} {what}: it edits, and says what")
            editor.passed(node, done)


def _is_guard(value: Any) -> bool:
    return getattr(value, "__fx_guard__", False)
