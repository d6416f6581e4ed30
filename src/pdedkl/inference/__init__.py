"""From observations to a posterior: Gram matrix, Cholesky, evidence, prediction."""

from .conditioning import condition
from .evidence import EvidenceInfo, negative_log_evidence
from .posterior import Posterior
from .prediction import Prediction

__all__ = ["EvidenceInfo", "Posterior", "Prediction", "condition", "negative_log_evidence"]
