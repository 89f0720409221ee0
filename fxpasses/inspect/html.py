"""The report of an inspection: one HTML page that stands alone, in light and dark.

`fragment` is what a notebook shows; `page` is the same inside a document of its own.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

if TYPE_CHECKING:
    from fxpasses.inspect.inspection import Inspection


class Row(NamedTuple):
    """Two lines that stand side by side; None where one text has no line to match."""

    before: str | None
    after: str | None

    @property
    def changed(self) -> bool:
        """Whether the lines differ."""
        return self.before != self.after


def page(inspection: Inspection) -> str:
    """A whole HTML document."""
    return _environment().get_template("page.html").render(inspection=inspection)


def fragment(inspection: Inspection) -> str:
    """The report without a document around it."""
    return _environment().get_template("report.html").render(inspection=inspection)


def side_by_side(before: str, after: str) -> Iterator[Row]:
    """The lines of two texts, aligned where they agree."""
    left, right = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(a=left, b=right, autojunk=False)
    for _, i1, i2, j1, j2 in matcher.get_opcodes():
        yield from (Row(*lines) for lines in zip_longest(left[i1:i2], right[j1:j2]))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("fxpasses.inspect"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["side_by_side"] = lambda texts: side_by_side(*texts)
    return environment
