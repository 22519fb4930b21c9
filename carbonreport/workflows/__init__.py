"""COMPOSITION: opens plug-ins, reads site and environment, and hands plain values down."""
