"""A loaded program: its methods by name, and the one place that lets go of them.

    with load("model.pte") as program:
        program["forward"](x)

After the block its libraries, weights and state are gone.
"""

from __future__ import annotations

from types import TracebackType

from backend.errors import InvalidArgument
from backend.runtime.method import Method


class Program:
    """The methods of one file. Each keeps its own weights and state between calls."""

    def __init__(self, methods: dict[str, Method]) -> None:
        self._methods = methods

    @property
    def methods(self) -> list[str]:
        """The methods' names."""
        return sorted(self._methods)

    def __getitem__(self, name: str) -> Method:
        """The method `name`.

        Raises:
            InvalidArgument: there is none.
        """
        if name not in self._methods:
            raise InvalidArgument(f"no method {name!r}; this program has {', '.join(self.methods)}")
        return self._methods[name]

    def close(self) -> None:
        """Let go of libraries, weights and state. A method called afterwards raises."""
        for method in self._methods.values():
            method.close()

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
