"""Energy logs that other tools wrote, read as runs: shared reading here, one file a format in `formats`."""
