"""Everything that knows torch: the numerics that run on any device, and their forms for a GPU."""

from transduce.core.arrays import dispatching
from transduce.device.memory import to_device

__all__ = ["dispatching", "to_device"]
