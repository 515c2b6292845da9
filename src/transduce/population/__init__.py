"""What a few labels say about all rows: means, totals, shares, quantiles and slopes of a column."""

from transduce.population.audit import Audit, NumberAudit, audit_classes, audit_numbers
from transduce.population.estimates import (
    estimate_difference,
    estimate_mean,
    estimate_quantile,
    estimate_regression,
    estimate_share,
    estimate_total,
)
from transduce.population.sample import Sample

__all__ = ["Audit", "NumberAudit", "audit_classes", "audit_numbers"]
__all__ += ["Sample", "estimate_difference", "estimate_mean", "estimate_quantile"]
__all__ += ["estimate_regression", "estimate_share", "estimate_total"]
