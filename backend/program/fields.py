"""Read a JSON object strictly: each field must be there and of its type, or the error names it.

    fields = Fields({"device": "cpu"}, "payload")
    fields.text("device")        # "cpu"
    fields.integer("size")       # InvalidProgram: payload: field "size" is missing

A file is input like any other: a program that trusts it fails later, and elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from backend.errors import InvalidProgram


@dataclass(frozen=True)
class Fields:
    """A JSON value that should be an object, and the path that leads to it."""

    value: Any
    path: str

    def text(self, name: str) -> str:
        """The string in field `name`."""
        result: str = self._typed(name, str, "a string")
        return result

    def integer(self, name: str) -> int:
        """The integer in field `name`."""
        result: int = self._typed(name, int, "an integer")
        return result

    def objects(self, name: str) -> list[Fields]:
        """The list of objects in field `name`."""
        items = self._typed(name, list, "a list")
        return [Fields(item, f"{self.path}.{name}[{index}]") for index, item in enumerate(items)]

    def values(self, name: str) -> list[Any]:
        """The list in field `name`, its elements unchecked."""
        result: list[Any] = self._typed(name, list, "a list")
        return result

    def object(self, name: str) -> Fields:
        """The object in field `name`."""
        return Fields(self._typed(name, dict, "an object"), f"{self.path}.{name}")

    def mapping(self) -> dict[str, Any]:
        """This value itself, which must be an object."""
        if not isinstance(self.value, dict):
            raise InvalidProgram(f"{self.path} is not an object")
        return self.value

    def wrong(self, name: str, expected: str) -> InvalidProgram:
        """The error for a field that does not hold what it should."""
        return InvalidProgram(f'{self.path}: field "{name}" is not {expected}')

    def _typed(self, name: str, kind: type, expected: str) -> Any:
        if name not in self.mapping():
            raise InvalidProgram(f'{self.path}: field "{name}" is missing')
        value = self.value[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.wrong(name, expected)
        return value
