"""The catalogue: one pass a file, and the pipelines made of them."""

from fxpasses.passes.move_cond_predicate_to_host import MoveCondPredicateToHost
from fxpasses.passes.remove_async_asserts import RemoveAsyncAsserts
from fxpasses.passes.remove_count_checks import RemoveCountChecks
from fxpasses.passes.replace_integer_floor_division import ReplaceIntegerFloorDivision
from fxpasses.passes.replace_masked_copy_with_where import ReplaceMaskedCopyWithWhere
from fxpasses.passes.replace_masked_fill_with_where import ReplaceMaskedFillWithWhere
from fxpasses.registry import registry

registry.add_pipeline(
    "default",
    "remove-async-asserts,replace-masked-fill-with-where,replace-masked-copy-with-where"
    ",remove-count-checks",
)
registry.add_pipeline("cpu", "default")
registry.add_pipeline("cuda", "default,replace-integer-floor-division,move-cond-predicate-to-host")

__all__ = [
    "MoveCondPredicateToHost",
    "RemoveAsyncAsserts",
    "RemoveCountChecks",
    "ReplaceIntegerFloorDivision",
    "ReplaceMaskedCopyWithWhere",
    "ReplaceMaskedFillWithWhere",
]
