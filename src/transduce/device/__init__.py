"""Everything that knows torch or cupy: the numerics that run on any device, and their forms for a GPU."""
