"""The environment variable by which a run inside another finds it."""

RUN_VARIABLE = "CARBONREPORT_RUN"
