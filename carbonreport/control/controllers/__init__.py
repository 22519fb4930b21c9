"""One file a way of setting: NVML itself, nvidia-smi through sudo, and one that only says what it would do."""
