"""What a few labels say about all rows: means, totals, shares, quantiles and slopes of a column."""

from transduce.population.audit import Audit, NumberAudit, audit_classes, audit_numbers
from transduce.population.means import estimate_difference, estimate_mean, estimate_total
from transduce.population.quantiles import estimate_quantile
from transduce.population.regressions import estimate_regression
from transduce.population.sample import Sample
from transduce.population.shares import estimate_share

__all__ = ["Audit", "NumberAudit", "audit_classes", "audit_numbers"]
__all__ += ["Sample", "estimate_difference", "estimate_mean", "estimate_quantile"]
__all__ += ["estimate_regression", "estimate_share", "estimate_total"]
