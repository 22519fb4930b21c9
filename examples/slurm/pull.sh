#!/bin/sh
# All jobs that touch a year, for: carbonreport audit --year 2026 --sacct sacct-2026.txt
#   ./pull.sh 2026 > sacct-2026.txt
# SLURM_TIME_FORMAT=%s: POSIX seconds. sacct prints local times without their offset, which the hour that comes twice in autumn makes
# ambiguous, and cuts a format that adds one (seen with 22.05). TZ=UTC is for -S and -E.
# -D: a requeued job shows its earlier runs too. No -T: the audit itself clips jobs at the year's edges, in the site's time zone, and needs
# their real start and end; hence a day more on both sides. JobName comes last: a delimiter in a name then harms no other column.
set -eu
year=${1:?a year, such as 2026}
fields=JobIDRaw,JobID,Cluster,Partition,Account,User,Submit,Start,End,ElapsedRaw,State,NNodes,NodeList,AllocTRES,ConsumedEnergyRaw,Suspended
if sacct --helpformat | grep -qw Exclusive; then fields=$fields,Exclusive; fi # since Slurm 26.05
TZ=UTC SLURM_TIME_FORMAT=%s exec sacct --allusers --allclusters -X -D --parsable2 --noconvert \
  -S "$((year - 1))-12-31T00:00:00" -E "$((year + 1))-01-02T00:00:00" --format="$fields,JobName"
