"""One file a provider, each with `create(options)`."""
