"""The file format: what lowering writes and the runtime reads. docs/program-format.md lists it."""
