"""The text form of a pipeline.

    pipeline = step ("," step)*
    step     = ["+" | "-"] name ["{" option ("," option)* "}"] | "(" pipeline ")" "*" [rounds]
    option   = key "=" value
    value    = atom | "[" [atom ("," atom)*] "]"
    atom     = word | string

    remove-async-asserts,(acme.fold-add{limit=4},acme.drop-identity)*

Words stay words here; what type a value has is the option's own affair (`fxpasses.options`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import NoReturn

from fxpasses.errors import InvalidPipeline

_TOKEN = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<word>[^\s,={}\[\]()"]+)|(?P<mark>[,={}\[\]()]))'
)
_ROUNDS = re.compile(r"[1-9][0-9]{0,5}")
_NAME = re.compile(r"[a-z0-9]+(?:[-_.][a-z0-9]+)*")


class Quoted(str):
    """A value written in double quotes: always a string, never a number or a flag."""


Value = str | list[str]


@dataclass
class Step:
    """One step as written: sign is "", "+" or "-"."""

    name: str
    sign: str = ""
    options: dict[str, Value] = field(default_factory=dict)


@dataclass
class Group:
    """Steps to repeat until nothing changes; `rounds` is None where the text gives no number."""

    steps: list[Step | Group]
    rounds: int | None = None


def is_name(text: str) -> bool:
    """Whether `text` can name a pass: lower case words joined by dashes, dots or underscores."""
    return _NAME.fullmatch(text) is not None


def parse(text: str) -> list[Step | Group]:
    """The steps of a pipeline's text; none for empty text.

    Raises:
        InvalidPipeline: with the column at which the text stops making sense.
    """
    return _Parser(text).pipeline()


def quote(text: str) -> str:
    """`text` as a string that `parse` reads back."""
    return json.dumps(text, ensure_ascii=False)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.grouped = False

    def pipeline(self) -> list[Step | Group]:
        steps = self.steps()
        if self.peek() is not None:
            self.fail("expected ','")
        return steps

    def steps(self) -> list[Step | Group]:
        token = self.peek()
        if token is None or token["mark"] == ")":
            return []
        steps = [self.step()]
        while self.accept(","):
            steps.append(self.step())
        return steps

    def step(self) -> Step | Group:
        if self.accept("("):
            if self.grouped:
                self.fail("a group that repeats cannot hold another one")
            return self.group()
        start = self.peek()
        word = self.word("a pass name")
        sign = word[0] if word[0] in "+-" else ""
        name = word[len(sign) :]
        if not is_name(name):
            self.at = start.start("word") if start else self.at
            self.fail(f"{name!r} is not a pass name")
        return Step(name, sign, self.options() if self.accept("{") else {})

    def group(self) -> Group:
        self.grouped = True
        steps = self.steps()
        self.grouped = False
        self.expect(")")
        star = self.word("'*' after a group")
        rounds = star[1:]
        if star[0] != "*" or (rounds and not _ROUNDS.fullmatch(rounds)):
            self.fail(f"expected '*' or '*ROUNDS' after a group, not {star!r}")
        return Group(steps, int(rounds) if rounds else None)

    def options(self) -> dict[str, Value]:
        options: dict[str, Value] = {}
        while not self.accept("}"):
            if options and not self.accept(","):
                self.fail("expected ',' or '}'")
            key = self.word("an option")
            if key in options:
                self.fail(f"option {key!r} is given twice")
            self.expect("=")
            options[key] = self.value()
        return options

    def value(self) -> Value:
        if not self.accept("["):
            return self.word("a value", strings=True)
        items: list[str] = []
        while not self.accept("]"):
            if items and not self.accept(","):
                self.fail("expected ',' or ']'")
            items.append(self.word("a value", strings=True))
        return items

    def word(self, wanted: str, strings: bool = False) -> str:
        token = self.peek()
        if token is not None and token["word"]:
            self.at = token.end()
            return token["word"]
        if token is not None and token["string"] and strings:
            return self.string(token)
        self.fail(f"expected {wanted}")

    def string(self, token: re.Match[str]) -> Quoted:
        try:
            text = json.loads(token["string"], strict=False)
        except ValueError as error:
            self.fail(f"bad escape in a string ({error})")
        self.at = token.end()
        return Quoted(text)

    def accept(self, mark: str) -> bool:
        token = self.peek()
        if token is None or token["mark"] != mark:
            return False
        self.at = token.end()
        return True

    def expect(self, mark: str) -> None:
        if not self.accept(mark):
            self.fail(f"expected {mark!r}")

    def peek(self) -> re.Match[str] | None:
        token = _TOKEN.match(self.text, self.at)
        if token is None and self.text[self.at :].strip():
            self.fail("a string has no end")
        return token

    def fail(self, problem: str) -> NoReturn:
        raise InvalidPipeline(f"{problem} at column {self.at + 1} of pipeline {self.text!r}")
