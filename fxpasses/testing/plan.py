"""A small program as data, printed as the source code that is run.

A plan lists the inputs, the buffers and the statements of a module's `forward`. The module is
made from the text that `source` prints, so what a report shows is what was tested:

    plan = Plan(
        inputs=(Input("x"), Input("m", torch.bool)),
        statements=(Statement("{a}[{m}] = 0.5", {"a": "x", "m": "m"}),),
        results=("x",),
    )
    print(plan.source())
"""

from __future__ import annotations

import linecache
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import torch
from torch.export import Dim, ExportedProgram, export

from fxpasses.testing import eager
from fxpasses.testing.tensors import Buffer, Input

INDENT = " " * 4
_numbers = count()


@dataclass(frozen=True)
class Block:
    """A function inside `forward`: a branch of a cond, or a part of a loop."""

    name: str
    parameters: tuple[str, ...]
    statements: tuple[Statement, ...]
    result: str

    def lines(self, flow: str) -> Iterator[str]:
        yield f"def {self.name}({', '.join(self.parameters)}):"
        for statement in self.statements:
            yield from (INDENT + line for line in statement.lines(flow))
        yield f"{INDENT}return {self.result}"


@dataclass(frozen=True)
class Statement:
    """One line of `forward`.

    Attributes:
        text: the line, with a letter in braces for each operand, as in "{a} > {b}".
        operands: the name behind each letter.
        target: the name that the value gets; "" for a line that only has effects.
        blocks: functions that are defined before the line.
    """

    text: str
    operands: Mapping[str, str] = field(default_factory=dict)
    target: str = ""
    blocks: tuple[Block, ...] = ()

    def lines(self, flow: str) -> Iterator[str]:
        for block in self.blocks:
            yield from block.lines(flow)
        text = self.text.format(**self.operands, flow=flow)
        yield f"{self.target} = {text}" if self.target else text

    def source(self, flow: str = "torch") -> str:
        """The lines, control flow called as `torch.cond` or as `FLOW.cond`."""
        return "\n".join(self.lines(flow))


@dataclass(frozen=True)
class Plan:
    """A module as data.

    Attributes:
        dynamic: export with the first size of every input left open.
        functional: take in-place writes out of the exported program.
    """

    inputs: tuple[Input, ...]
    buffers: tuple[Buffer, ...] = ()
    statements: tuple[Statement, ...] = ()
    results: tuple[str, ...] = ()
    dynamic: bool = False
    functional: bool = False

    def source(self, flow: str = "torch") -> str:
        """The module's source code."""
        init = [line for buffer in self.buffers for line in buffer.lines()]
        names = ["self", *(declared.name for declared in self.inputs)]
        forward = [line for statement in self.statements for line in statement.lines(flow)]
        return "\n".join(
            [
                *(f"# {declared}" for declared in self.inputs),
                *(["# exported with the first size open"] if self.dynamic else []),
                *(["# exported and functionalised"] if self.functional else []),
                "class Program(torch.nn.Module):",
                *(_method("__init__", ["self"], ["super().__init__()", *init]) if init else []),
                *_method("forward", names, [*forward, f"return {', '.join(self.results)},"]),
            ]
        )

    def module(self, flow: str = "torch") -> torch.nn.Module:
        """A fresh module; with flow="eager", control flow is Python's own."""
        text = self.source(flow)
        file = f"<plan {next(_numbers)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        names: dict[str, Any] = dict(eager.GLOBALS)
        exec(compile(text, file, "exec"), names)
        module: torch.nn.Module = names["Program"]()
        return module

    def example(self, seed: int = 0) -> tuple[torch.Tensor, ...]:
        """Inputs from a seed; of a dynamic plan, each seed has its own size."""
        generator = torch.Generator().manual_seed(seed)
        first = 3 + seed % 4 if self.dynamic else None
        return tuple(declared.tensor(generator, first) for declared in self.inputs)

    def export(self) -> ExportedProgram:
        """The program that `torch.export` makes of it."""
        open_size = {0: Dim("n", min=2)}
        shapes = tuple(open_size for _ in self.inputs) if self.dynamic else None
        program = export(self.module(), self.example(), dynamic_shapes=shapes, strict=False)
        return program.run_decompositions({}) if self.functional else program

    def names(self) -> set[str]:
        """Every name that a statement or the result reads."""
        read = set(self.results) | {buffer.tied for buffer in self.buffers}
        for statement in self.statements:
            read |= set(statement.operands.values())
        return read

    def renamed(self, old: str, new: str) -> Plan:
        """The plan with `new` read wherever `old` was."""
        statements = tuple(
            replace(s, operands={k: new if v == old else v for k, v in s.operands.items()})
            for s in self.statements
        )
        results = dict.fromkeys(new if name == old else name for name in self.results)
        return replace(self, statements=statements, results=tuple(results))


def _method(name: str, parameters: Iterable[str], body: Iterable[str]) -> list[str]:
    lines = [f"def {name}({', '.join(parameters)}):", *(INDENT + line for line in body)]
    return textwrap.indent("\n".join(lines), INDENT).splitlines()
