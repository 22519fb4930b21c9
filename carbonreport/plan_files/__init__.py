"""Reading what plans are made from: tables of kernels by clocks, profiler traces. One file a format."""
