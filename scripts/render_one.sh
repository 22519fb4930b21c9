#!/bin/sh
# Render one statement with an installed carbonreport, far from the checkout: sh scripts/render_one.sh /path/to/carbonreport
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
record=$("$1" estimate --quiet --gpu A100-SXM4-80GB --count 4 --hours 12.4 --start 2026-01-14T18:20+01:00 --zone DE --pue aws)
"$1" statement "$record" -o energy.tex -o energy.md -o energy.json
grep -q 'carbonreportEmissions' energy.tex
grep -q 'kgCO' energy.md
head -c 600 energy.md
