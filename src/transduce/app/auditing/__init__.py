"""Audits: how wrong predictions are that were made elsewhere, from rows that somebody checked."""

from typing import TYPE_CHECKING

from transduce.core import lazy_names

if TYPE_CHECKING:
    from transduce.app.auditing.engine import audit as audit
    from transduce.app.auditing.result import AuditResult as AuditResult

_HOMES = {
    "AuditResult": "transduce.app.auditing.result",
    "audit": "transduce.app.auditing.engine",
}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
