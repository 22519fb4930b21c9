"""The shipped tables are what the script makes of the raw files."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RAW = Path(os.environ.get("CARBONREPORT_RAW", ROOT.parent / "shared" / "data"))


@pytest.mark.skipif(not (RAW / "grid" / "shape_12x24.csv.gz").is_file(), reason="the raw files are not here")
def test_a_rebuild_gives_the_shipped_tables_byte_for_byte(tmp_path):
    command = [sys.executable, str(ROOT / "scripts" / "build_grid_data.py"), str(RAW), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": str(ROOT)})

    assert done.returncode == 0, done.stderr
    assert "125 shapes agree" in done.stdout
    shipped = ROOT / "carbonreport" / "data"
    for name in ("ember_yearly.csv", "odbl/zones.csv", "odbl/weekends.csv", "odbl/direct.csv", "odbl/held_out.csv"):
        assert (tmp_path / name).read_bytes() == (shipped / name).read_bytes(), name
    # Compared unpacked: another version of zlib may pack the same rows otherwise.
    packed = [(folder / "odbl" / "shapes.csv.gz").read_bytes() for folder in (tmp_path, shipped)]
    assert gzip.decompress(packed[0]) == gzip.decompress(packed[1])
    assert packed[0][4:8] == packed[1][4:8] == bytes(4), "the header must not hold a date"
