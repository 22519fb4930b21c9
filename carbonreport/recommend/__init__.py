"""SEARCH over time and place, pure: when to run the same thing again, or that it is not worth it."""
