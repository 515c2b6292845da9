"""Settings of Bayesian transduction: what they may be."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from transduce.core import checks
from transduce.device.kernels import KernelLike, check_kernel


@dataclass(frozen=True)
class Settings:
    """Settings of `BayesianTransducer`, checked."""

    kernel: KernelLike
    width: float | str
    softness: float | str
    bias: float
    n_balls: int
    tolerance: float
    max_bounces: int
    reject_below: float | None
    reject_share: float | None
    max_memory_mb: float
    standardize: bool
    n_jobs: int | None


def read_settings(given: dict[str, Any]) -> Settings:
    """Return the settings of an estimator, or raise a ValueError that says which one to mend."""
    read = {field.name: given[field.name] for field in fields(Settings)}
    check_kernel(read["kernel"])
    if not isinstance(read["width"], str) or read["width"] not in ("median", "cv"):
        words = "width (a number, 'median' or 'cv')"
        read["width"] = checks.check_positive(words, read["width"], least=1e-100, most=1e100)
    if not isinstance(read["softness"], str) or read["softness"] not in ("loo", "cv"):
        checks.check_number("softness (a number from 0, 'loo' or 'cv')", read["softness"])
        read["softness"] = checks.check_not_negative(
            "softness", read["softness"], "'loo', 'cv' or a number from 0"
        )
    checks.check_number("bias", read["bias"])
    read["bias"] = checks.check_not_negative("bias", read["bias"], "a number from 0")
    checks.check_whole("n_balls", read["n_balls"], least=2)
    checks.check_whole("max_bounces", read["max_bounces"], least=1)
    for name in ("tolerance", "max_memory_mb"):
        read[name] = checks.check_positive(name, read[name])
    checks.check_choice("predict_with", given["predict_with"], ("vote", "bayes_point"))
    checks.check_flag("standardize", read["standardize"])
    checks.check_jobs(read["n_jobs"])
    for name in ("reject_below", "reject_share"):
        if read[name] is not None:
            checks.check_number(name, read[name])
            if not 0.0 <= read[name] <= 1.0:
                raise ValueError(f"{name} must lie between 0 and 1; got {read[name]!r}.")
    if read["reject_below"] is not None and read["reject_share"] is not None:
        raise ValueError("Give either reject_below or reject_share, not both.")
    return Settings(**read)
