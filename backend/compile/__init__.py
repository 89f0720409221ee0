"""From an edge program to a compiled method; the private parts of torch are touched here only.

`prepare` runs before ExecuTorch's edge dialect, `edge` and `views` undo that dialect, `method` puts
the steps in order, `aoti` calls AOTInductor and `library` opens what it built.
"""
