"""Where work on the parts of a table is done: on the cores of this machine, or on a Dask cluster."""

from transduce.distributed.frames import DaskParts, is_dask
from transduce.distributed.runners import LocalRunner, Runner, cluster_runner

__all__ = ["DaskParts", "LocalRunner", "Runner", "cluster_runner", "is_dask"]
