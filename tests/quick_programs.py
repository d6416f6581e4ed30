"""Programs that compile quickly, for tests; imported before any is compiled.

The library's own programs are compiled as quickly as `XLA_FLAGS` asks for the others. Users have them optimised, which
takes twice as long to compile, and tests run each of them a few times on few points.

JAX writes each program down in a context of its own, which takes 3 ms, and keeps all of them, 1.4 MB each. With
thousands of them, looking through the contexts takes a tenth of the time of the tests. So all share one, where this
version of JAX lets them.
"""

from contextlib import suppress
from functools import cache

from pdedkl import compilation

compilation.OPTIMISED["cpu"] = compilation.UNOPTIMISED["cpu"]

with suppress(ImportError, AttributeError):
    import jax._src.interpreters.mlir as writing

    writing.make_ir_context = cache(writing.make_ir_context)
