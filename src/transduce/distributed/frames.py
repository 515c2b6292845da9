"""The partitions of a Dask frame as the parts of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd


def is_dask(table: Any) -> bool:
    """Return whether this is a Dask frame.

    Examples
    --------
    >>> is_dask(pd.DataFrame())
    False
    """
    return type(table).__module__.startswith(("dask.", "dask_expr.")) and hasattr(table, "map_partitions")


@dataclass(frozen=True, eq=False)
class DaskParts:
    """A Dask frame, partition by partition.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> parts = DaskParts(dd.from_pandas(pd.DataFrame({"a": range(5)}), npartitions=2))
    >>> sum(parts.each(lambda number, frame: len(frame), range(parts.n_parts)))
    5
    """

    frame: Any

    @property
    def columns(self) -> list[Any]:
        """Names of the columns."""
        return list(self.frame.columns)

    def each(self, work: Callable[[Any, pd.DataFrame], Any], items: Sequence[Any]) -> list[Any]:
        """Return ``work(item, partition)`` for every partition and the item at its place, in order.

        Parameters
        ----------
        work : callable
        items : sequence
            As many as there are partitions; an item that is None spares its partition.

        Returns
        -------
        list
            None where the item is None.
        """
        from dask import compute, delayed

        wanted = [number for number, item in enumerate(items) if item is not None]
        partitions = self.frame.to_delayed()
        tasks = [delayed(work)(items[number], partitions[number]) for number in wanted]
        found: list[Any] = [None] * len(items)
        for number, result in zip(wanted, compute(*tasks), strict=True):
            found[number] = result
        return found

    @property
    def n_parts(self) -> int:
        """Number of partitions."""
        return int(self.frame.npartitions)

    def beside(
        self, work: Callable[[Any, Any, pd.DataFrame], pd.DataFrame], shared: Any, items: Sequence[Any]
    ) -> Any:
        """Return a lazy frame of ``work(shared, item, partition)`` for every partition and the item at its place.

        Parameters
        ----------
        work : callable
            Returns the partition with new columns; called with an empty one too, to learn their types.
        shared : object
            Travels once to every worker.
        items : sequence
            As many as there are partitions.

        Returns
        -------
        dask.dataframe.DataFrame
        """
        import dask.dataframe as dd
        from dask import delayed

        meta = work(shared, None, self.frame._meta)
        partitions = self.frame.to_delayed()
        sent = _sent(shared)
        tasks = [
            delayed(work)(sent, item, partition) for item, partition in zip(items, partitions, strict=True)
        ]
        return dd.from_delayed(tasks, meta=meta, divisions=self.frame.divisions, verify_meta=False)


def _sent(shared: Any) -> Any:
    """Return what stands for an object on the workers: sent to a running cluster now, else a part of the graph."""
    from dask import delayed

    try:
        from distributed import get_client

        return get_client().scatter(shared, broadcast=True, hash=False)
    except (ImportError, ValueError):  # there is no cluster
        return delayed(shared, pure=False)
