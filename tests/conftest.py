"""Tests run with the shapes in the signatures checked, wherever arrays flow (user input has checks of its own)."""

from jaxtyping import install_import_hook

CHECKED = ["pdedkl.embeddings", "pdedkl.inference", "pdedkl.kernels", "pdedkl.means", "pdedkl.operators.symbol"]

with install_import_hook(CHECKED, "shape_checks.typechecker"):
    import pdedkl  # noqa: F401
