"""The library's own programs, compiled as quickly as `XLA_FLAGS` asks for the others; imported before any is compiled.

Users have them optimised, which takes twice as long to compile, and tests run each of them a few times on few points.
"""

from pdedkl import compilation

compilation.OPTIMISED["cpu"] = compilation.UNOPTIMISED["cpu"]
