"""One file a format, each with `create(options)` and `available()`; the suffix of the output names it."""
