"""One file a format, each with `create(options)` and `available()`; a format knows its files by their content."""
