"""What a pipeline does, as a short string that a cache of compiled code can hold.

    fingerprint(Pipeline.parse("default"))    # "9f0c..." in every process, until something changes

It covers all that a result may depend on: the pipeline's text (names, order, options), guards that
are switched off, the source of the modules that define the passes, this package, and torch.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch

import fxpasses
from fxpasses.pipeline import Pipeline
from fxpasses.registry import Pass

logger = logging.getLogger(__name__)


def fingerprint(pipeline: Pipeline) -> str | None:
    """A digest of what `pipeline` does, or None, with a log entry, when a pass has no source."""
    digest = hashlib.sha256()
    try:
        for part in _parts(pipeline):
            digest.update(part.encode() + b"\0")
    except (OSError, TypeError) as error:
        logger.warning("nothing compiled with %s is cached: %s", pipeline, error)
        return None
    return digest.hexdigest()


def _parts(pipeline: Pipeline) -> Iterator[str]:
    yield from (torch.__version__, fxpasses.__version__, _engine(), str(pipeline))
    for pass_ in pipeline.passes:
        yield ",".join(sorted(getattr(pass_, "skipped", ())))
        yield from (_source(cls) for cls in type(pass_).__mro__ if issubclass(cls, Pass))


@cache
def _engine() -> str:
    """The source of this package: while it is worked on, its version says too little."""
    root = Path(inspect.getfile(fxpasses)).parent
    return "\0".join(path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py")))


def _source(cls: type[Any]) -> str:
    """The source of the module that defines `cls`, whose functions it may call.

    Raises:
        OSError, TypeError: neither the module nor the class has any.
    """
    module = sys.modules.get(cls.__module__)
    if module is not None and getattr(module, "__file__", None):
        return inspect.getsource(module)
    return inspect.getsource(cls)  # a notebook has the source of its cells, and no file
