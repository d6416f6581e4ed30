"""Embeddings `h(q)`, and how operators are carried through them."""

from .base import Activation, Embedding, Linear, activate, dense, lecun
from .invariants import Invariants
from .jets import Jet
from .linear import Affine, IdentityEmbedding
from .networks import MLP, Bottleneck, Residual
from .push_forward import LatentJet, Normalisation, push_forward

__all__ = [
    "MLP",
    "Activation",
    "Affine",
    "Bottleneck",
    "Embedding",
    "IdentityEmbedding",
    "Invariants",
    "Jet",
    "LatentJet",
    "Linear",
    "Normalisation",
    "Residual",
    "activate",
    "dense",
    "lecun",
    "push_forward",
]
