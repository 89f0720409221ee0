"""The hosts warn about themselves while they are imported; that is no failure of ours."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import executorch.exir
    import executorch.runtime  # noqa: F401
