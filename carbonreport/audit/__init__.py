"""The lab's year: a ledger of jobs and meters, and how the two agree."""
