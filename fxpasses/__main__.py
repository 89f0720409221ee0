"""`python -m fxpasses` is the `fxpasses` command."""

from fxpasses.cli import main

main(prog_name="fxpasses")
