"""Listeners: everything that only watches a run.

statistics = Statistics()
pipeline.run(program, listeners=[statistics, Dumps("dumps"), Reproducer("failure.zip")])
print(statistics)
"""

from fxpasses.listeners.dumps import Dumps
from fxpasses.listeners.reproducer import Reproducer, load_reproducer
from fxpasses.listeners.statistics import Statistics
from fxpasses.listeners.timing import Timing

__all__ = ["Dumps", "Reproducer", "Statistics", "Timing", "load_reproducer"]
