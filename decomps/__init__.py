"""Decompositions: operators that AOTInductor cannot lower, written in ones that it can.

    program = program.run_decompositions(decomps.decomposition_table())

One operator a file; `table` gathers them.
"""

from __future__ import annotations

from decomps.table import decomposition_table

__all__ = ["decomposition_table"]
