"""The tool that finds guards without a test finds them."""

import click
import pytest

from fxpasses import InvalidPass
from fxpasses.testing.guards import guards, missed_by, switch_off

GUARD = "remove-count-checks/count_checks"
NOTICES = """
from fxpasses.passes import RemoveCountChecks

def test_that_notices():
    assert not RemoveCountChecks.skipped

def test_that_does_not():
    assert RemoveCountChecks.name
"""


def test_the_tests_that_fail_without_a_guard(tmp_path):
    (tmp_path / "test_it.py").write_text(NOTICES)
    (killed,) = missed_by([f"--rootdir={tmp_path}", str(tmp_path)], GUARD)
    assert killed.endswith("test_it.py::test_that_notices")


def test_tests_that_do_not_run_prove_nothing(tmp_path):
    with pytest.raises(click.ClickException, match="did not run"):
        missed_by([str(tmp_path)], GUARD)


def test_every_guard_has_a_name():
    assert GUARD in guards()
    assert "replace-masked-copy-with-where/same_mask" in guards()


@pytest.mark.parametrize("name", ["remove-count-checks/holds", "remove-async-asserts/x"])
def test_an_unknown_guard(name):
    with pytest.raises(InvalidPass, match="no guard"):
        switch_off(name)
