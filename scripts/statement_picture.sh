#!/bin/sh
# docs/statement.png: the first page of the PDF statement of the example record. Needs the extras pdf and plots, and pdftoppm (poppler-utils).
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${CARBONREPORT:-.venv/bin/carbonreport}" statement examples/records/h200.jsonl -o "$folder/statement.pdf"
pdftoppm -png -r 88 -f 1 -l 1 -singlefile "$folder/statement.pdf" docs/statement
