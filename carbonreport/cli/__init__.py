"""The command line: one thin file a command; parse, call a workflow, print."""
