"""Sets caps and clocks on boards, and takes them back however the run ends."""
