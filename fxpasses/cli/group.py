"""The command group: global options, subcommands found by name, one line for every error."""

from __future__ import annotations

import sys
import traceback
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import click

from fxpasses.cli.bisect import bisect
from fxpasses.cli.doctor import doctor
from fxpasses.cli.errors import Failure, as_click, one_line
from fxpasses.cli.files import INPUT, load_plugin
from fxpasses.cli.passes import passes
from fxpasses.cli.run import run


class Commands(click.Group):
    """A group whose errors are one line on stderr and an exit code: 1 failed, 2 wrong use."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command and exit; what click would print over several lines becomes one."""
        try:
            code = super().main(*args, **options | {"standalone_mode": False})
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            code = error.exit_code
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
        try:
            command: click.Command = entry.load()
        except Exception as error:  # noqa: BLE001  # a plugin may raise anything; others go on
            return _unavailable(entry, error)
        return command


def _plugins() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group="fxpasses.commands")}


def _unavailable(entry: EntryPoint, error: Exception) -> click.Command:
    """A command that says why the real one cannot be loaded."""
    reason = f"{entry.value} cannot be loaded: {one_line(error)}"

    def fail() -> None:
        raise Failure(reason) from error

    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(entry.name, anything, fail, short_help=reason)


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
    type=INPUT,
    help="Import a Python file that registers passes.",
)
@click.version_option(package_name="fxpasses")
def main(debug: bool, plugins: tuple[Path, ...]) -> None:  # noqa: ARG001  # `invoke` reads debug
    """Rewrite, lower and run exported PyTorch programs."""
    for path in plugins:
        load_plugin(path)


main.add_command(passes)
main.add_command(run)
main.add_command(bisect)
main.add_command(doctor)
