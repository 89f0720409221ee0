"""Passes and pipelines are known by name; a name is given once."""

import importlib
from dataclasses import dataclass

import pytest

from fxpasses import (
    DuplicatePass,
    InvalidPass,
    Pass,
    Registry,
    UnknownPass,
    register_pass,
    registry,
)


def make(name, known, qualname="Made", **constraints):
    @dataclass(frozen=True)
    class Made(Pass):
        """Made for a test.

        More about it.
        """

    Made.__qualname__ = qualname
    return register_pass(name, into=known, **constraints)(Made)


@pytest.fixture
def known() -> Registry:
    return Registry()


def test_a_pass_is_found_by_name_and_by_its_former_name(known):
    cls = make("test.new", known, aliases=["test.old"])
    assert known.get("test.new") is known.get("test.old") is cls
    assert known.names() == ["test.new"]


def test_the_built_in_passes_are_known():
    assert {
        "remove-async-asserts",
        "replace-masked-copy-with-where",
        "replace-masked-fill-with-where",
    } <= set(registry.names())
    assert {"default", "cpu", "cuda"} <= set(registry.pipelines)


def test_the_summary_is_the_first_line(known):
    assert make("test.a", known).summary() == "Made for a test."


def test_an_unknown_name_gives_the_nearest(known):
    make("test.drop-dropout", known)
    with pytest.raises(UnknownPass, match=r"'test.drop-droput'; did you mean 'test.drop-dropout'"):
        known.get("test.drop-droput")
    with pytest.raises(UnknownPass, match=r"unknown pass 'zzz'$"):
        known.get("zzz")


def test_one_name_for_two_passes_is_refused_and_both_places_named(known):
    @dataclass(frozen=True)
    class First(Pass):
        pass

    @dataclass(frozen=True)
    class Second(Pass):
        pass

    register_pass("test.a", into=known)(First)
    with pytest.raises(DuplicatePass) as caught:
        register_pass("test.a", into=known)(Second)
    assert str(caught.value).count("test_registry.py:") == 2


def test_an_alias_that_is_taken_is_refused(known):
    make("test.a", known, "First")
    with pytest.raises(DuplicatePass):
        make("test.b", known, "Second", aliases=["test.a"])


def test_a_definition_that_is_run_again_takes_the_place_of_the_old(known):
    make("test.a", known)
    again = make("test.a", known)
    assert known.get("test.a") is again


def test_pipelines_and_passes_share_one_space_of_names(known):
    make("test.a", known)
    known.add_pipeline("all", "test.a")
    known.add_pipeline("all", "test.a")
    with pytest.raises(DuplicatePass):
        known.add_pipeline("all", "")
    with pytest.raises(DuplicatePass):
        known.add_pipeline("test.a", "")
    with pytest.raises(DuplicatePass, match="names a pipeline"):
        make("all", known, "Other")


@pytest.mark.parametrize("name", ["Upper", "a b", "", "a,b", "-a"])
def test_a_bad_name_is_refused(known, name):
    with pytest.raises(InvalidPass, match="cannot name a pass"):
        make(name, known)


def test_what_is_no_pass_is_refused(known):
    with pytest.raises(InvalidPass, match="does not derive from"):
        register_pass("test.a", into=known)(int)

    class Bare(Pass):
        pass

    with pytest.raises(InvalidPass, match="put @dataclass"):
        register_pass("test.a", into=known)(Bare)
    assert known.names() == []


module = importlib.import_module("fxpasses.registry")


@dataclass
class EntryPoint:
    name: str
    load: object
    value: str = "acme:passes"


def test_plugins_load_when_a_name_is_missing_and_a_broken_one_is_left_out(known, monkeypatch):
    def broken():
        raise ImportError("no module named acme")

    entries = [EntryPoint("bad", broken), EntryPoint("good", lambda: make("acme.x", known))]
    monkeypatch.setattr(module, "entry_points", lambda group: entries)
    assert known.get("acme.x").name == "acme.x"
    assert known.broken_plugins == {"bad": "ImportError: no module named acme"}


def test_plugins_load_once(known, monkeypatch):
    loaded = []
    entries = [EntryPoint("good", lambda: loaded.append(1))]
    monkeypatch.setattr(module, "entry_points", lambda group: entries)
    known.names()
    known.names()
    assert loaded == [1]


def test_a_pipeline_takes_no_alias_either():
    known = Registry()

    @register_pass("acme.new", aliases=["acme.old"], into=known)
    @dataclass(frozen=True)
    class New(Pass):
        """Has a former name."""

    with pytest.raises(DuplicatePass, match=r"'acme\.old' is taken"):
        known.add_pipeline("acme.old", "acme.new")
