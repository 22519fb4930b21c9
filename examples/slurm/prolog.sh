#!/bin/sh
# Slurm prolog (slurm.conf: Prolog=/etc/slurm/carbonreport-prolog.sh), run as root on each node of a job before it begins.
# What an earlier job of the same user left set on boards, after a crash of the node say, is put back before the next one begins.
# It never fails a job: a node whose prolog fails is drained.
PATH=/usr/local/bin:/usr/bin:/bin:${CARBONREPORT_BIN:-/opt/carbonreport/bin}
export PATH
command -v carbonreport >/dev/null 2>&1 || exit 0
[ -n "$SLURM_JOB_UID" ] || exit 0
timeout 20 carbonreport restore --user "$SLURM_JOB_UID" >/dev/null 2>&1
exit 0
