"""Hardware to record: the tracer, its one sampler thread, and the meters it reads."""
