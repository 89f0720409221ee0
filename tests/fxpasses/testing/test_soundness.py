"""Thousands of random programs, and proof that a wrong pass would not get past them."""

import pytest

from fxpasses import Pipeline
from fxpasses.passes import ReplaceMaskedCopyWithWhere, ReplaceMaskedFillWithWhere
from fxpasses.testing.generators import random_program
from fxpasses.testing.oracle import NotExportable, Unsound
from fxpasses.testing.soundness import check_pass_sound, prove

PROGRAMS = 3000


def test_the_default_pipeline_changes_no_bit():
    """A generator that triggers no rewrite, or no refusal, would prove nothing."""
    *_, tally = prove("default", PROGRAMS, jobs=2)
    assert not tally.failures, tally
    assert tally.programs == PROGRAMS
    assert tally.rewritten > PROGRAMS / 3
    assert set(tally.by_pass) == {pass_.name for pass_ in Pipeline.parse("default").passes}
    assert len(tally.kept) > 10
    assert tally.not_exportable.total() < PROGRAMS / 5


@pytest.mark.parametrize(
    ("weakened", "most"),
    [
        (ReplaceMaskedCopyWithWhere().without("same_mask"), 100),
        (ReplaceMaskedCopyWithWhere().without("accumulate"), 100),
        (ReplaceMaskedCopyWithWhere().without("unwritten_picks"), 1000),
        (ReplaceMaskedCopyWithWhere().without("unwritten_source"), 1000),
        (ReplaceMaskedCopyWithWhere().without("distinct_places"), 1000),
        (ReplaceMaskedCopyWithWhere().without("layout"), 1000),
        (ReplaceMaskedFillWithWhere().without("accumulate"), 300),
        (ReplaceMaskedFillWithWhere().without("same_kind"), 100),
        (ReplaceMaskedFillWithWhere().without("layout"), 1000),
    ],
    ids=lambda case: f"{case.name}-without-{min(case.skipped)}" if hasattr(case, "name") else "",
)
def test_a_pass_without_a_guard_is_caught(weakened, most):
    with pytest.raises(Unsound) as caught:
        check_pass_sound(weakened, programs=most)
    shown = str(caught.value)
    assert "class Program(torch.nn.Module):" in shown
    assert len(shown.splitlines()) < 25


def test_a_seed_names_a_program():
    assert random_program("3.1").source() == random_program("3.1").source()
    assert random_program("3.1").source() != random_program("3.2").source()


def test_a_shown_program_is_the_program_that_ran():
    plan = random_program("0.0")
    try:
        plan.export()
    except NotExportable:
        pytest.fail("the seed was chosen for a program that exports")
    assert plan.module().forward.__code__.co_filename.startswith("<plan ")
