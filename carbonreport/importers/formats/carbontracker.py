"""carbontracker's logs, 1.0 to 2.4: what was measured and not what was predicted, its PUE taken out, its mean over devices made a sum."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from carbonreport.importers.carbontracker_words import Block, Epoch, Words, words_of
from carbonreport.importers.cells import joules_from_kwh
from carbonreport.importers.curves import Curve
from carbonreport.importers.drafts import Draft, Load, imported, steady
from carbonreport.importers.imported import Imported
from carbonreport.importers.limits import MOST_BOARD_WATTS
from carbonreport.importers.log_file import LogFile, decoded
from carbonreport.importers.moments import Moments, moments
from carbonreport.importers.wishes import Wishes, wishes_of
from carbonreport.model.notes import Note
from carbonreport.model.run import DeviceKind

FORMAT = "carbontracker"
# The default intensity that a version falls back to tells the PUE that it multiplied by (read in the releases): g/kWh -> PUE.
_PUE_OF_LEVEL = {475.0: 1.55, 481.0: 1.58, 445.0: 1.58}
_LEVELS_OF_TWO = {481.0, 445.0}
_MEAN_SINCE = 2  # versions from 2.0.0 write the mean over the devices of a component, not a value for each


def create(options: Mapping[str, str]) -> "CarbonTracker":
    """The importer of carbontracker's logs."""
    return CarbonTracker(wishes_of(options))


def available() -> str | None:
    """Always usable."""
    return None


class CarbonTracker:
    """Reads …_carbontracker.log (epochs), …_carbontracker_output.log and pasted output (blocks)."""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes

    def recognises(self, file: LogFile) -> bool:
        """By its own sentences."""
        return any(words in file.head for words in ("carbontracker version", "CarbonTracker:")) or (
            "consumption for" in file.head and "epoch(s):" in file.head
        )

    def read(self, file: LogFile) -> Imported:
        """One run of the epochs; without them one run for each block of actual consumption."""
        words = words_of(file.text)
        if words.epochs:
            return self._of_epochs(file, words)
        if any(block.is_actual for block in words.blocks):
            return self._of_blocks(file, words)
        return imported(FORMAT, file, (), rows=len(words.blocks), wishes=self._wishes, why_not=_nothing(words))

    def _of_epochs(self, file: LogFile, words: Words) -> Imported:
        rejected = list(words.rejected)
        usable = []
        for epoch in words.epochs:
            if why := _why_unusable(epoch):
                rejected.append((epoch.line, why))
            else:
                usable.append(epoch)
        stamps = moments([e.stamp for e in usable], zone=self._wishes.zone)
        notes = _told_of(words)
        if not usable:
            return imported(FORMAT, file, (), rows=len(words.epochs), rejected=rejected, wishes=self._wishes)
        draft = _draft(file, words, usable, stamps)
        return imported(FORMAT, file, [draft], rows=len(words.epochs), rejected=rejected, notes=notes, wishes=self._wishes)

    def _of_blocks(self, file: LogFile, words: Words) -> Imported:
        """Energy as printed, without the PUE that is inside where it can be told."""
        actual = _last_of_each([block for block in words.blocks if block.is_actual])
        whole = _with_log_beside(file, words)
        pue, notes = self._pue(file, whole)
        counts = set(whole.devices.values())
        has_mean = (whole.major or 0) >= _MEAN_SINCE or bool(_LEVELS_OF_TWO & set(whole.levels))
        if has_mean and len(counts) > 1:
            why = "it prints one total of components with different numbers of devices, each their mean; give the …_carbontracker.log beside it"
            return imported(FORMAT, file, (), rows=len(words.blocks), wishes=self._wishes, why_not=why)
        times = max(counts, default=1) if has_mean else 1
        rejected = [(b.line, "it has no energy or no time") for b in actual if b.kwh is None or b.seconds is None]
        good = [b for b in actual if b.kwh is not None and b.seconds is not None]
        stamps = moments([b.stamp or "" for b in good], zone=self._wishes.zone)
        drafts = []
        for number, (block, end_s) in enumerate(zip(good, stamps.seconds, strict=True)):
            seconds, joules = block.seconds or 0.0, joules_from_kwh(block.kwh or 0.0) * times / pue
            start_s = end_s - seconds if end_s is not None else 0.0
            load = Load(
                "machine",
                ", ".join(whole.names.values()) or "what carbontracker measured",
                "node",
                "reported",
                _source(whole),
                steady(seconds, joules, start_s=start_s),
            )
            drafts.append(Draft(_key(file, number), file.stem, (load,), stamps.clock if end_s is not None else "none", kind="training"))
        if times > 1:
            notes.append(_mean_made_sum(file, whole))
        predicted = sum(not block.is_actual for block in words.blocks)
        if predicted:
            notes.append(Note("import-predicted-left-out", f"{file.name}: {predicted} blocks of predicted consumption were left out"))
        return imported(FORMAT, file, drafts, rows=len(words.blocks), rejected=rejected, notes=notes, wishes=self._wishes)

    def _pue(self, file: LogFile, words: Words) -> tuple[float, list[Note]]:
        """The PUE inside printed energy, and what to say of it."""
        told = self._wishes.pue or words.pue
        why = "that was given" if self._wishes.pue else "that the log names"
        if told is None:
            told = next((_PUE_OF_LEVEL[level] for level in words.levels if level in _PUE_OF_LEVEL), None)
            why = "of the version that falls back to its carbon intensity"
        if told is not None:
            return told, [
                Note(
                    "import-pue-taken-out", f"{file.name}: carbontracker's printed energy holds a PUE; it was divided by the {told:g} {why}"
                )
            ]
        text = f"{file.name}: carbontracker's printed energy holds a PUE of 1.55 to 1.59 (none before 1.1), which this file does not name; it stands as printed, too high unless --mapping pue=… takes it out"
        return 1.0, [Note("import-pue-unknown", text)]


def _nothing(words: Words) -> str:
    if words.has_traceback:
        return "the run ended with an error before an epoch was measured; there is no energy"
    if words.blocks:
        return "it holds predictions alone, no actual consumption; the …_carbontracker.log beside it has the epochs that were measured"
    return "no epoch was measured; there is no energy"


def _why_unusable(epoch: Epoch) -> str:
    if epoch.duration_s is None:
        return "the epoch has no duration"
    known = [watts for watts in epoch.watts.values() if watts is not None]
    if not known:
        return "the epoch has no power"
    if any(w > 2 * MOST_BOARD_WATTS for watts in known for w in watts):
        return f"a power above {2 * MOST_BOARD_WATTS:g} W, which no device draws"
    return ""


def _draft(file: LogFile, words: Words, epochs: Sequence[Epoch], stamps: Moments) -> Draft:
    """One run: each component's energy, epoch after epoch."""
    clock = stamps.clock if all(s is not None for s in stamps.seconds) else "none"
    ends = [s if s is not None and clock != "none" else 0.0 for s in stamps.seconds]
    lengths = [epoch.duration_s or 0.0 for epoch in epochs]
    if clock == "none":
        ends = [sum(lengths[: i + 1]) for i in range(len(lengths))]
    loads = []
    for part in dict.fromkeys(name for epoch in epochs for name in epoch.watts):
        powers = [_sum_over_devices(words, part, epoch.watts.get(part)) for epoch in epochs]
        if any(p is not None for p in powers):
            kind: DeviceKind = "gpu" if part == "gpu" else "cpu" if part == "cpu" else "other"
            curve = _curve(ends, lengths, powers)
            loads.append(Load(part, words.names.get(part, part), kind, "reported", _source(words), curve, words.devices.get(part, 1)))
    notes = []
    if blank := _missing(epochs):
        notes.append(Note("import-partial", f"{file.name}: {', '.join(blank)} had no sample in some epochs; that energy is missing"))
    if any((words.major or 0) >= _MEAN_SINCE and words.devices.get(load.id, 1) > 1 for load in loads):
        notes.append(_mean_made_sum(file, words))
    return Draft(
        _key(file, 0),
        file.stem,
        tuple(loads),
        clock,
        kind="training",
        facts={"carbontracker": words.version},
        notes=tuple(notes),
        is_complete=not words.is_interrupted,
    )


def _missing(epochs: Sequence[Epoch]) -> list[str]:
    """Components without a power in some epoch."""
    return sorted({part for epoch in epochs for part, watts in epoch.watts.items() if watts is None})


def _sum_over_devices(words: Words, part: str, watts: list[float] | None) -> float | None:
    if watts is None:
        return None
    is_mean = (words.major or 0) >= _MEAN_SINCE and len(watts) == 1
    return sum(watts) * (words.devices.get(part, 1) if is_mean else 1)


def _curve(ends: Sequence[float], lengths: Sequence[float], powers: Sequence[float | None]) -> Curve:
    """Cumulative energy: flat between epochs. Stamps have whole seconds, so an epoch may seem to begin before the last one ended."""
    seconds, joules, gaps = [ends[0] - lengths[0]], [0.0], []
    for end_s, length_s, watts in zip(ends, lengths, powers, strict=True):
        begin_s = max(end_s - length_s, seconds[-1])
        if begin_s > seconds[-1]:
            seconds.append(begin_s)
            joules.append(joules[-1])
        if watts is None:
            gaps.append((seconds[-1], max(end_s, seconds[-1])))
        joules.append(joules[-1] + (watts or 0.0) * length_s)
        seconds.append(max(end_s, seconds[-1]))
    return Curve(tuple(seconds), tuple(joules), tuple(gaps))


def _last_of_each(blocks: Sequence[Block]) -> list[Block]:
    """Of a log, whose lines have stamps, the last block: it counts from the first epoch on. Pasted output may hold several runs."""
    return [blocks[-1]] if all(block.stamp for block in blocks) else list(blocks)


def _with_log_beside(file: LogFile, words: Words) -> Words:
    """The words with version, PUE and devices of the standard log of the same run, where it lies beside."""
    content = file.beside(file.name.replace("_output.log", ".log")) if file.name.endswith("_output.log") else None
    if content is None:
        return words
    other = words_of(decoded(content))
    return replace(
        words, version=other.version, pue=other.pue or words.pue, devices=other.devices or words.devices, names=other.names or words.names
    )


def _told_of(words: Words) -> list[Note]:
    return (
        [Note("import-partial", "carbontracker stopped before all epochs were run; what came after the last one is missing")]
        if words.is_interrupted
        else []
    )


def _mean_made_sum(file: LogFile, words: Words) -> Note:
    counts = ", ".join(f"{count} × {part}" for part, count in words.devices.items())
    return Note(
        "import-mean-made-sum",
        f"{file.name}: carbontracker {words.version or '2'} writes the mean over devices; it was multiplied by their number ({counts})",
    )


def _source(words: Words) -> str:
    return f"carbontracker {words.version}".strip()


def _key(file: LogFile, number: int) -> str:
    """The same for the two logs of one run."""
    return f"{file.name.replace('_output.log', '.log')} {number}" if "_carbontracker" in file.name else ""
