"""Is a pass right about programs that nobody thought of?

    check_pass_sound("replace-masked-copy-with-where", programs=200)

draws programs, exports them, runs the pass, and compares with eager, bit for bit, over several
calls. A difference is shrunk to a few lines of source. The same on the command line:

    python -m fxpasses.testing.soundness --programs 3000 --jobs 2
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import count

import click
import torch

from fxpasses.pipeline import Pipeline
from fxpasses.registry import Pass
from fxpasses.testing.generators import random_program
from fxpasses.testing.oracle import NotExportable, Unsound, judge
from fxpasses.testing.plan import Plan
from fxpasses.testing.shrink import shrink
from fxpasses.testing.tally import Tally

BATCH = 100
Subject = str | Pass | Pipeline


def check_pass_sound(subject: Subject, programs: int = 100, seed: int = 0) -> Tally:
    """Run a pass, or a pipeline, on random programs.

    Raises:
        Unsound: the first program that it gets wrong, shrunk.
    """
    pipeline, tally = as_pipeline(subject), Tally()
    for plan in _plans(programs, seed, tally):
        try:
            _try(plan, pipeline, tally)
        except Unsound as found:
            raise smallest(found, pipeline) from None
    return tally


def as_pipeline(subject: Subject) -> Pipeline:
    """The pipeline of a text, or of one pass."""
    if isinstance(subject, str):
        return Pipeline.parse(subject)
    return subject if isinstance(subject, Pipeline) else Pipeline([subject])


def explore(pipeline: str, programs: int, seed: int) -> Tally:
    """Judge so many programs, all failures included, in this process."""
    tally, parsed = Tally(), Pipeline.parse(pipeline)
    for plan in _plans(programs, seed, tally):
        try:
            _try(plan, parsed, tally)
        except Unsound as found:
            tally.programs += 1
            tally.failures.append(str(smallest(found, parsed)))
    return tally


def _plans(programs: int, seed: int, tally: Tally) -> Iterator[Plan]:
    """New plans, until so many programs were judged."""
    seen: set[str] = set()
    for number in count():
        if tally.programs >= programs:
            return
        plan = random_program(f"{seed}.{number}")
        if plan.source() not in seen:
            seen.add(plan.source())
            yield plan


def _try(plan: Plan, pipeline: Pipeline, tally: Tally) -> None:
    try:
        tally.count(judge(plan, pipeline))
    except NotExportable as refusal:
        tally.not_exportable[str(refusal)[:60]] += 1


def smallest(found: Unsound, pipeline: Pipeline) -> Unsound:
    """The fault, shown by the smallest program that has it."""
    last = found

    def fails(plan: Plan) -> bool:
        nonlocal last
        try:
            judge(plan, pipeline)
        except Unsound as again:
            last = again
            return True
        except NotExportable:
            return False
        return False

    shrink(found.plan, fails)
    return last


def prove(pipeline: str, programs: int, seed: int = 0, jobs: int = 1) -> Iterator[Tally]:
    """The tally so far, after each batch of programs; `jobs` processes share the work.

    Programs are drawn batch by batch, so the same seed gives the same programs for any `jobs`.
    """
    total = Tally()
    sizes = [min(BATCH, programs - start) for start in range(0, programs, BATCH)]
    batches = [(size, seed * 1_000_003 + number) for number, size in enumerate(sizes)]
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs, _start, maxtasksperchild=10) as pool:
        for tally in pool.imap_unordered(partial(_explore, pipeline), batches):
            total.add(tally)
            yield total


def _start() -> None:
    """A worker: one thread, and no word of what torch.export thinks of the programs."""
    torch.set_num_threads(1)
    logging.disable(logging.CRITICAL)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, sys.stderr.fileno())


def _explore(pipeline: str, batch: tuple[int, int]) -> Tally:
    return explore(pipeline, *batch)


@click.command()
@click.option("--programs", default=3000, show_default=True, help="How many to judge.")
@click.option("--seed", default=0, show_default=True, help="Same seed, same programs.")
@click.option("--jobs", default=1, show_default=True, help="Processes that share the work.")
@click.option("-p", "--pipeline", default="default", show_default=True)
def main(programs: int, seed: int, jobs: int, pipeline: str) -> None:
    """Judge a pipeline by random programs; exit with 1 if it gets one wrong."""
    start, tally = time.perf_counter(), Tally()
    for tally in prove(pipeline, programs, seed, jobs):
        rate = tally.programs / (time.perf_counter() - start)
        wrong = len(tally.failures)
        click.echo(f"{tally.programs} programs, {wrong} wrong, {rate:.1f} a second", err=True)
    click.echo(tally)
    sys.exit(bool(tally.failures))


if __name__ == "__main__":
    main()
