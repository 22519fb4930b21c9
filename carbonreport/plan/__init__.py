"""Search over settings of a GPU: which cap, which clocks, and whether to switch at all. Pure."""
