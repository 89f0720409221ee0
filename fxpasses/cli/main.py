"""The command group: global options, subcommands found by name, one line for every error."""

from __future__ import annotations

import sys
import traceback
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import click

from fxpasses.cli.doctor import doctor
from fxpasses.cli.errors import Misuse, as_click
from fxpasses.cli.files import load_plugin
from fxpasses.cli.passes import passes
from fxpasses.cli.run import run


class Commands(click.Group):
    """A group whose errors are one line on stderr and an exit code: 1 failed, 2 wrong use."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command and exit; what click would print over several lines becomes one."""
        try:
            code = super().main(*args, **options | {"standalone_mode": False})
        except click.Abort:
            code = _complain("interrupted", 1)
        except click.ClickException as error:
            code = _complain(error.format_message(), error.exit_code)
        sys.exit(code or 0)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if ctx.params["debug"]:
                traceback.print_exc()
            raise as_click(error) from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *_plugins()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        own = super().get_command(ctx, cmd_name)
        entry = _plugins().get(cmd_name)
        if own is not None or entry is None:
            return own
        command = entry.load()
        if not isinstance(command, click.Command):
            raise Misuse(f"the plugin {entry.value} is no click command")
        return command


def _plugins() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group="fxpasses.commands")}


def _complain(message: str, code: int) -> int:
    click.echo(f"error: {message}", err=True)
    return code


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Print the traceback of an error.")
@click.option(
    "--load",
    "plugins",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Import a Python file that registers passes.",
)
@click.version_option(package_name="fxpasses")
def main(debug: bool, plugins: tuple[Path, ...]) -> None:  # noqa: ARG001  # `invoke` reads debug
    """Rewrite, lower and run exported PyTorch programs."""
    for path in plugins:
        load_plugin(path)


main.add_command(passes)
main.add_command(run)
main.add_command(doctor)
