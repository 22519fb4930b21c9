"""One small file a meter, each with `create(options)` and `available()`; the folder is the registry."""
