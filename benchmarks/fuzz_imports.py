"""Foreign logs mutated: columns in another order, another case, delimiter, encoding, header without units, tails cut, rows twice.

    python benchmarks/fuzz_imports.py [COUNT] [SEED]

Each mutant must give the same energy, or a named rejection: nothing crashes, nothing takes over five seconds, no energy changes silently.
"""

import csv
import importlib.util
import io
import random
import re
import sys
import time
from collections import Counter
from pathlib import Path

from carbonreport.errors import CarbonreportError
from carbonreport.importers.log_file import LogFile
from carbonreport.plugins import load, names

MOST_SECONDS = 5.0
SAMPLES_FILE = Path(__file__).resolve().parents[1] / "tests" / "importers" / "samples.py"
TABLES = ("codecarbon", "zeus", "eco2ai", "nvidia-smi", "csv", "slurm")


def load_samples():
    """The logs that the tests use."""
    spec = importlib.util.spec_from_file_location("carbonreport_fuzz_samples", SAMPLES_FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.SAMPLES


def _delimiter(text):
    return max(",;|\t", key=text.partition("\n")[0].count)


def _rows(text):
    delimiter = _delimiter(text)
    quoting = csv.QUOTE_NONE if delimiter == "|" else csv.QUOTE_MINIMAL
    return delimiter, [row for row in csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True, quoting=quoting) if row]


def _text(rows, delimiter):
    if delimiter == "|":
        return "".join("|".join(row) + "\n" for row in rows)
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return out.getvalue()


# Each takes the content and a random generator, and gives the mutant and whether its energy must be the same.


def reordered(content, rng):
    delimiter, rows = _rows(content.decode())
    width = len(rows[0])
    rows = [[*row[: width - 1], delimiter.join(row[width - 1 :]).replace("|", "")] if len(row) > width else row for row in rows]
    order = rng.sample(range(width), width)
    return _text([[row[i] for i in order if i < len(row)] for row in rows], delimiter).encode(), True


def redelimited(content, rng):
    delimiter, rows = _rows(content.decode())
    width = len(rows[0])
    return _text([row[:width] for row in rows], rng.choice([";", "\t"] if delimiter != "|" else ["\t", ";", ","])).encode(), True


def header_case(content, rng):
    header, _, rest = content.decode().partition("\n")
    return f"{rng.choice([str.upper, str.title, str.lower])(header)}\n{rest}".encode(), True


def header_padded(content, rng):
    delimiter, rows = _rows(content.decode())
    rows[0] = [f"{' ' * rng.randrange(3)}{name}{' ' * rng.randrange(4)}" for name in rows[0]]
    return _text(rows, delimiter).encode(), True


def header_units(content, rng):
    header, _, rest = content.decode().partition("\n")
    header = re.sub(r" \[W\]", rng.choice([" (W)", "[w]", " [W] "]), header)
    return f"{header}\n{rest}".encode(), True


def header_twice(content, rng):
    lines = content.decode().split("\n")
    lines.insert(rng.randrange(1, len(lines)), lines[0])
    return "\n".join(lines).encode(), True


def nounits(content, rng):
    return re.sub(r"(\d) W\b", r"\1", content.decode()).encode(), True


def windows_lines(content, rng):
    return content.replace(b"\n", b"\r\n"), True


def byte_order_mark(content, rng):
    return (b"\xef\xbb\xbf" + content, True) if rng.random() < 0.5 else (content.decode().encode("utf-16"), True)


def nul_bytes(content, rng):
    at = rng.randrange(len(content))
    return content[:at] + b"\x00" * rng.randrange(1, 9) + content[at:], True


def empty_lines(content, rng):
    lines = content.split(b"\n")
    lines.insert(rng.randrange(len(lines)), rng.choice([b"", b"   "]))
    return b"\n".join(lines), True


def rows_twice(content, rng):
    lines = content.decode().rstrip("\n").split("\n")
    i = rng.randrange(1, len(lines))
    return "\n".join([*lines[: i + 1], lines[i], *lines[i + 1 :]]).encode() + b"\n", True


def all_twice(content, rng):
    header, _, rest = content.decode().partition("\n")
    return f"{header}\n{rest}{rest}".encode(), True


def cut_tail(content, rng):
    return content[: rng.randrange(len(content))], False


def dropped_line(content, rng):
    lines = content.split(b"\n")
    del lines[rng.randrange(len(lines))]
    return b"\n".join(lines), False


def noise(content, rng):
    at = rng.randrange(len(content))
    return content[:at] + bytes(rng.randrange(256) for _ in range(rng.randrange(1, 12))) + content[at:], False


def swapped_bytes(content, rng):
    mutant = bytearray(content)
    for _ in range(rng.randrange(1, 20)):
        mutant[rng.randrange(len(mutant))] = rng.randrange(256)
    return bytes(mutant), False


def stray_quote(content, rng):
    at = rng.randrange(len(content))
    return content[:at] + b'"' + content[at:], False


FOR_TABLES = (reordered, redelimited, header_case, header_padded, header_units, header_twice, nounits, rows_twice, all_twice)
FOR_ALL = (windows_lines, byte_order_mark, nul_bytes, empty_lines, cut_tail, dropped_line, noise, swapped_bytes, stray_quote)


def mutations_of(sample):
    """The mutations that make sense for a log."""
    is_table = sample.format in TABLES and not sample.text.lstrip().startswith("{")
    return (*FOR_TABLES, *FOR_ALL) if is_table else FOR_ALL


def read(sample, content):
    """What the importers make of a mutant: the outcome, and how long it took."""
    begin = time.perf_counter()
    file = LogFile(sample.file, content)
    try:
        order = (*(n for n in names("importer") if n != "csv"), "csv")
        importers = (load("importer", name, known_options(name, sample)) for name in order)
        found = next((importer.read(file) for importer in importers if importer.recognises(file)), None)
    except CarbonreportError as error:
        return str(error), None, time.perf_counter() - begin
    return "", found, time.perf_counter() - begin


def known_options(name, sample):
    return sample.options


def judge(sample, mutation, rng):
    """What is wrong with a mutant's outcome; "" where nothing is. And what kind of outcome it was."""
    content, is_same = mutation(sample.text.encode(), rng)
    error, found, seconds = read(sample, content)
    if seconds > MOST_SECONDS:
        return f"took {seconds:.1f} s", "slow"
    if error or found is None:
        return "", "refused"
    joules = found.it_joules
    if joules is None:
        return ("" if found.why_not else "no energy and no reason"), "refused"
    if not 0 <= joules < float("inf"):
        return f"energy {joules}", "wrong"
    if abs(joules - sample.it_joules) <= 1e-3 * sample.it_joules:
        return "", "same"
    if is_same and not found.rejected:
        return f"{joules:g} J in place of {sample.it_joules:g} J, and nothing was rejected", "wrong"
    return "", "other"


def main(count=10_000, seed=0):
    rng = random.Random(seed)
    samples = load_samples()
    outcomes, slowest = Counter(), 0.0
    for number in range(count):
        sample = samples[number % len(samples)]
        mutation = rng.choice(mutations_of(sample))
        state = rng.getstate()
        begin = time.perf_counter()
        wrong, kind = judge(sample, mutation, rng)
        slowest = max(slowest, time.perf_counter() - begin)
        outcomes[kind] += 1
        if wrong:
            outcomes["faults"] += 1
            print(f"{sample.file} {mutation.__name__} (number {number}): {wrong}")
            if outcomes["faults"] == 1:
                rng.setstate(state)
                print(mutation(sample.text.encode(), rng)[0][:600])
    print(
        f"{count} mutants, seed {seed}: "
        + ", ".join(f"{n} {kind}" for kind, n in sorted(outcomes.items()))
        + f"; the slowest took {slowest:.2f} s"
    )
    return 1 if outcomes["faults"] else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
