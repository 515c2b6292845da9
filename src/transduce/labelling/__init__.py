"""Labelling a table by hand, with a model that answers the rest after every label, and certificates of when to stop."""

from transduce.labelling.certificates import (
    Audit,
    Draws,
    RecallCertificate,
    WrongCertificate,
    certify_answers,
    certify_recall,
)
from transduce.labelling.export import Exported
from transduce.labelling.proposals import Proposal
from transduce.labelling.session import Session
from transduce.labelling.settings import Settings

__all__ = [
    "Audit",
    "Draws",
    "Exported",
    "Proposal",
    "RecallCertificate",
    "Session",
    "Settings",
    "WrongCertificate",
    "certify_answers",
    "certify_recall",
]
