"""The run-time type checker that jaxtyping's import hook uses; an int is a good float."""

from beartype import BeartypeConf, beartype

typechecker = beartype(conf=BeartypeConf(is_pep484_tower=True))
