"""`fxpasses passes`: which passes and pipelines there are, and what one of them does."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import click

from fxpasses import options
from fxpasses.cli.console import print_table
from fxpasses.registry import Pass, registry
from fxpasses.rewrite import RewritePass


@click.command()
@click.argument("name", required=False)
def passes(name: str | None) -> None:
    """List the passes and pipelines, or describe one of them."""
    if name is None:
        _list()
    elif name in registry.pipelines:
        click.echo(registry.pipelines[name])
    else:
        _describe(registry.get(name))


def _list() -> None:
    named = [(name, registry.get(name).summary()) for name in registry.names()]
    print_table(("pass", "what it does"), named)
    click.echo()
    print_table(("pipeline", "text"), registry.pipelines.items())
    for plugin, reason in registry.broken_plugins.items():
        click.echo(f"plugin {plugin} is left out: {reason}", err=True)


def _describe(cls: type[Pass]) -> None:
    click.echo(f"{cls.name}\n\n{inspect.getdoc(cls)}\n")
    if dataclasses.fields(cls):
        print_table(("option", "type", "default"), _options(cls))
        click.echo()
    for label, value in _facts(cls):
        click.echo(f"{label + ':':<10} {value}")


def _options(cls: type[Pass]) -> list[tuple[str, str, str]]:
    types = options.types_of(cls)
    return [
        (field.name, inspect.formatannotation(types[field.name]), _default(field))
        for field in dataclasses.fields(cls)
    ]


def _default(field: dataclasses.Field[Any]) -> str:
    value = options.default_of(field)
    if value is dataclasses.MISSING:
        return "required"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _facts(cls: type[Pass]) -> list[tuple[str, str]]:
    facts = {
        "before": cls.before,
        "after": cls.after,
        "requires": cls.requires,
        "conflicts": cls.conflicts,
        "aliases": cls.aliases,
        "targets": [str(target) for target in cls.targets],
        "guards": cls.guards() if issubclass(cls, RewritePass) else (),
    }
    return [(label, ", ".join(values)) for label, values in facts.items() if values]
