"""Records of one job from several hosts read as one run."""

from dataclasses import replace

from carbonreport.store.writer import save
from carbonreport.testing import make_record
from carbonreport.workflows.charge import charge_records, load_records
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.statement import statement_of


def test_two_hosts_of_a_job_are_one_run_of_its_own_length(tmp_path):
    paths = []
    for rank, host in enumerate(("host-a", "host-b")):
        record = make_record({f"GPU-{host}": 300.0}, 2, start="2026-01-10T10:00Z")
        record = replace(record, id=f"run-{host}", name="pretraining", host=host, job="job", rank=rank, world_size=2)
        paths.append(save(record, tmp_path / f"{host}.jsonl"))
    charged = charge_records(load_records(paths), PlaceOptions(zone="DE", pue="1.2"), {})
    words = " ".join(sentence.text for sentence in statement_of(charged).paragraph)

    assert words.startswith("Training “pretraining”")
    assert "2.0 h in all" not in words
    assert "4.0 h" not in words
    assert charged.footprint.run_seconds == 2 * 3600
    assert charged.footprint.it_joules.value == 2 * 2 * 3600 * 300.0
