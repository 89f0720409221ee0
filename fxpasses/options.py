"""Options of a pass: the typed fields of its dataclass.

One declaration serves the text form, the command line's help and the cache key:

    @dataclass(frozen=True)
    class Unroll(Pass):
        limit: int = 4
        only: tuple[OpOverload, ...] = ()

reads and prints as `unroll{limit=8,only=[aten.add.Tensor]}`. Fields that hold their default are
not printed.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any

import torch
from torch._ops import OpOverload

from fxpasses.errors import InvalidOption
from fxpasses.text import Quoted, Value, quote

_FLAGS = {"true": True, "false": False}
_PLAIN_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/+*")


def types_of(cls: type) -> dict[str, Any]:
    """Option names and their types, in declaration order."""
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def required(cls: type) -> list[str]:
    """The options without a default."""
    fields = dataclasses.fields(cls)
    return [field.name for field in fields if default_of(field) is dataclasses.MISSING]


def unsupported(cls: type) -> str:
    """The first option whose type has no text form, with that type; "" where all have one."""
    wrong = (f"{name}: {_named(kind)}" for name, kind in types_of(cls).items() if not _known(kind))
    return next(wrong, "")


def _known(kind: Any) -> bool:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return len(inner) == 2 and inner[1] is ... and inner[0] in _READERS
    if origin in (types.UnionType, typing.Union):
        kinds = [option for option in inner if option is not type(None)]
        return len(kinds) == 1 and len(inner) == 2 and _known(kinds[0])
    if origin is typing.Literal:
        return all(isinstance(word, str) for word in inner)
    return kind in _READERS


def read(cls: type, name: str, given: dict[str, Value]) -> dict[str, Any]:
    """The constructor arguments that the options `given` in text stand for.

    Raises:
        InvalidOption: an unknown option, or a value of another type than the field's.
    """
    known = types_of(cls)
    for key in given:
        if key not in known:
            has = ", ".join(known) or "none"
            raise InvalidOption(f"pass {name!r} has no option {key!r}; it has: {has}")
    return {key: _read(known[key], value, f"{name}{{{key}}}") for key, value in given.items()}


def check(instance: Any, name: str) -> None:
    """Refuse an instance whose fields do not have their declared types.

    Raises:
        InvalidOption: naming the first such field.
    """
    for key, kind in types_of(type(instance)).items():
        value = getattr(instance, key)
        if not _is(kind, value):
            raise InvalidOption(f"{name}{{{key}}}: expected {_named(kind)}, got {value!r}")


def print_options(instance: Any) -> str:
    """The options of `instance` that differ from their defaults, as text; "" when none does."""
    changed = [
        f"{field.name}={_print(getattr(instance, field.name))}"
        for field in dataclasses.fields(instance)
        if not _same(getattr(instance, field.name), default_of(field))
    ]
    return "{" + ",".join(changed) + "}" if changed else ""


def default_of(field: dataclasses.Field[Any]) -> Any:
    """The default of an option, or `dataclasses.MISSING` for one that must be given."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return repr(left) == repr(right)  # tells 0.0 from -0.0, and knows NaN again
    return type(left) is type(right) and bool(left == right)


def _read(kind: Any, value: Value, where: str) -> Any:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple and isinstance(value, list):
        return tuple(_read(inner[0], item, where) for item in value)
    if origin in (types.UnionType, typing.Union):
        return _read_optional(inner, value, where)
    if isinstance(value, list):
        raise InvalidOption(f"{where}: expected {_named(kind)}, got a list")
    if origin is typing.Literal and value in inner:
        return str(value)
    read = _READERS.get(kind)
    if read is None or (isinstance(value, Quoted) and kind is not str):
        raise InvalidOption(f"{where}: expected {_named(kind)}, got {value!r}")
    try:
        return read(value)
    except (ValueError, KeyError, AttributeError) as error:
        raise InvalidOption(f"{where}: expected {_named(kind)}, got {value!r}") from error


def _read_optional(kinds: tuple[Any, ...], value: Value, where: str) -> Any:
    if value == "none" and not isinstance(value, Quoted):
        return None
    return _read(next(kind for kind in kinds if kind is not type(None)), value, where)


def _read_operator(text: str) -> OpOverload:
    found: Any = torch.ops
    for part in text.split("."):
        found = getattr(found, part)
    if not isinstance(found, OpOverload):
        raise ValueError(text)
    return found


_READERS: dict[Any, Any] = {
    bool: _FLAGS.__getitem__,
    int: int,
    float: float,
    str: str,
    OpOverload: _read_operator,
}


def _print(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ",".join(_print(item) for item in value) + "]"
    if isinstance(value, str):
        plain = value and set(value) <= _PLAIN_WORD and value != "none"
        return value if plain else quote(value)
    return str(value)


def _is(kind: Any, value: Any) -> bool:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return isinstance(value, tuple) and all(_is(inner[0], item) for item in value)
    if origin in (types.UnionType, typing.Union):
        return any(_is(option, value) for option in inner)
    if origin is typing.Literal:
        return value in inner
    return type(value) is kind or (kind is OpOverload and isinstance(value, OpOverload))


def _named(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) and not typing.get_args(kind) else str(kind)
