"""Labelling a table by hand, with a model that answers the rest after every label, and certificates of when to stop."""

from transduce.labelling.certificates import (
    Audit,
    Draws,
    RecallCertificate,
    WrongCertificate,
    certify_answers,
    certify_recall,
)
from transduce.labelling.session import Exported, Session, SessionSettings
from transduce.labelling.state import Proposal

__all__ = [
    "Audit",
    "Draws",
    "RecallCertificate",
    "WrongCertificate",
    "certify_answers",
    "certify_recall",
]
__all__ += ["Exported", "Proposal", "Session", "SessionSettings"]
