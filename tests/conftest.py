"""Every test runs with the shapes in the signatures checked: jaxtyping's hook, with beartype behind it."""

from jaxtyping import install_import_hook

with install_import_hook("pdedkl", "beartype.beartype"):
    import pdedkl  # noqa: F401
