"""The graph before and after each pass: as text, as one HTML page, as a networkx graph.

inspection = inspect_pipeline(program, "default")
inspection                        # in a notebook: the report
inspection.save("report.html")
print(inspection.steps[0].before)
"""

from fxpasses.inspect.inspection import Inspection, inspect_pipeline
from fxpasses.inspect.recorder import Recorder, Step
from fxpasses.printer import program_text

__all__ = ["Inspection", "Recorder", "Step", "inspect_pipeline", "program_text"]
