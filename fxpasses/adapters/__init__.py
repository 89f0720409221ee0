"""Pipelines inside other compilers.

    fxpasses.adapters.executorch.transform_pass("default")    # to_edge_transform_and_lower
    fxpasses.adapters.inductor.inductor_pass("default")       # Inductor's custom pass hooks
    fxpasses.adapters.compile.backend("default")              # torch.compile(backend=...)

Each module stands alone and imports its host's API only when it is imported itself.
"""
