"""The `fxpasses` command.

    fxpasses passes
    fxpasses run model.pt2 -p default -o optimised.pt2 --report report.html

Other packages add subcommands through the entry point `fxpasses.commands`; they are imported when
they are called, so that looking at passes needs no backend.
"""

from fxpasses.cli.group import main

__all__ = ["main"]
