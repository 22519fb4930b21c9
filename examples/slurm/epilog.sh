#!/bin/sh
# Slurm epilog (slurm.conf: Epilog=/etc/slurm/carbonreport-epilog.sh), run as root on each node of a job after it ended, killed ones too.
# What the job's user set on boards (power caps, clocks) is taken back; a job's cgroup takes the guardian with it, so this is the last one to do it.
# It never fails: a node whose epilog fails is drained.
PATH=/usr/local/bin:/usr/bin:/bin:${CARBONREPORT_BIN:-/opt/carbonreport/bin}
export PATH
command -v carbonreport >/dev/null 2>&1 || exit 0
[ -n "$SLURM_JOB_UID" ] || exit 0
timeout 20 carbonreport restore --user "$SLURM_JOB_UID" >/dev/null 2>&1
exit 0
