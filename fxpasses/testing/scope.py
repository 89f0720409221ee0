"""A program while it is drawn: the names so far, and the tensors behind them.

Each line runs in eager as soon as it is drawn. So the generator knows every dtype and shape
without a model of torch, and a line that eager refuses never enters the program.
"""

from __future__ import annotations

import string
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

import torch

from fxpasses.testing import eager
from fxpasses.testing.plan import Block, Statement
from fxpasses.testing.tensors import Buffer

T = TypeVar("T")
LARGEST = 256


class Scope:
    """The body of a function under construction.

    Args:
        choose: draws one of several options; the first is the simplest.
        numbers: for the names of new values, shared by nested scopes.
        given: the tensors that the function starts with.
        frozen: whether these must not be written.
    """

    def __init__(
        self,
        choose: Callable[[Sequence[Any]], Any],
        numbers: Iterator[int],
        given: dict[str, torch.Tensor],
        frozen: bool = False,
    ) -> None:
        self.choose, self.numbers = choose, numbers
        self.tensors = dict(given)
        self.picks: dict[str, tuple[str, str]] = {}
        self.definitions: dict[str, Statement] = {}
        self.statements: list[Statement] = []
        self._frozen = [_place(value) for value in given.values()] if frozen else []
        held = {name[5:]: value for name, value in given.items() if name.startswith("self.")}
        self._names: dict[str, Any] = {**given, "self": SimpleNamespace(**held)}

    def oneof(self, options: Sequence[T]) -> T:
        """One of several options."""
        chosen: T = self.choose(options)
        return chosen

    def run(
        self,
        text: str,
        operands: dict[str, str],
        gives: bool = True,
        blocks: tuple[Block, ...] = (),
    ) -> str | None:
        """Add a line if eager takes it; the name of its value, "" for none, None if refused."""
        target = f"t{next(self.numbers)}" if gives else ""
        statement = Statement(text, operands, target, blocks)
        try:
            with warnings.catch_warnings(action="ignore"):
                exec(statement.source("eager"), dict(eager.GLOBALS), self._names)
        except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
            return None
        if target:
            value = self._names[target]
            if value.numel() > LARGEST:
                return None
            self.tensors[target] = value
            self.definitions[target] = statement
        self.statements.append(statement)
        return target

    def fill(self, text: str, **known: str) -> dict[str, str] | None:
        """Operands for the letters of `text`, or None where there are none."""
        operands = dict(known)
        letters = {letter for _, letter, _, _ in string.Formatter().parse(text) if letter}
        for letter in sorted(letters - set(known)):
            names = self.candidates(letter, operands)
            if not names:
                return None
            operands[letter] = self.oneof(names)
        return {letter: name for letter, name in operands.items() if letter in letters}

    def apply(self, texts: Sequence[str], gives: bool = True, **known: str) -> str | None:
        """Add a line made from one of `texts`."""
        text = self.oneof(texts)
        operands = self.fill(text, **known)
        return None if operands is None else self.run(text, operands, gives)

    def candidates(self, letter: str, operands: dict[str, str]) -> list[str]:
        """The names that a letter may stand for, beside the operands that are known."""
        named = {
            other: self.tensors[name] for other, name in operands.items() if name in self.tensors
        }
        suits: dict[str, Callable[[torch.Tensor], bool]] = {
            "a": lambda value: value.dtype is not torch.bool,
            "b": lambda value: _alike(value, named.get("a")),
            "m": lambda value: _masks(value, named.get("a")),
            "n": lambda value: _alike(value, named.get("m")),
        }
        free = {name: value for name, value in self.tensors.items() if name not in self.picks}
        return [name for name, value in free.items() if suits[letter](value)]

    def may_write(self, name: str) -> bool:
        """Whether the function may write a tensor: not what a branch was handed."""
        return _place(self.tensors[name]) not in self._frozen


def _place(value: torch.Tensor) -> int:
    return value.untyped_storage().data_ptr()


def _alike(value: torch.Tensor, other: torch.Tensor | None) -> bool:
    return other is None or (value.dtype, value.shape) == (other.dtype, other.shape)


def _masks(value: torch.Tensor, indexed: torch.Tensor | None) -> bool:
    if value.dtype is not torch.bool or indexed is None:
        return value.dtype is torch.bool
    return value.shape == indexed.shape[: value.dim()] and value.dim() >= min(1, indexed.dim())


def buffer_tensors(buffers: Sequence[Buffer]) -> dict[str, torch.Tensor]:
    """The tensors of `buffers` by the name that statements use; tied ones are one tensor."""
    made: dict[str, torch.Tensor] = {}
    for buffer in buffers:
        made[buffer.reference] = made[buffer.tied] if buffer.tied else buffer.tensor()
    return made
