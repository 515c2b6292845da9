"""Labelling a table by hand.

A model answers the rest after every label, and certificates say when to stop.
"""

from transduce.app.labelling.certificates import (
    Audit,
    Draws,
    RecallCertificate,
    WrongCertificate,
    certify_answers,
    certify_recall,
)
from transduce.app.labelling.samples import SampleRequest
from transduce.app.labelling.session import Exported, Session, SessionSettings
from transduce.app.labelling.state import Proposal

__all__ = [
    "Audit",
    "Draws",
    "RecallCertificate",
    "WrongCertificate",
    "certify_answers",
    "certify_recall",
]
__all__ += ["Exported", "Proposal", "SampleRequest", "Session", "SessionSettings"]
