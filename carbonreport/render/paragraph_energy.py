"""What the devices drew, how that is known, and what the facility used for it."""

import math
from collections.abc import Sequence
from itertools import groupby

from carbonreport.model.footprint import ChargedRun, Footprint
from carbonreport.model.quantity import Quantity
from carbonreport.model.run import DeviceKind
from carbonreport.model.statement import Sentence
from carbonreport.render.digits import percent, shown
from carbonreport.render.setting import gpu_count, is_estimate, is_gpu_only, is_mostly_estimate, not_covered
from carbonreport.render.words import capital, counters_in_words, listed, sensors_in_words, unbracketed

_MOST_METHODS = 2
_FULLY_COVERED = 0.995


def what_it_drew(footprint: Footprint, runs: Sequence[ChargedRun]) -> Sentence:
    """Kinds with one verb share it; kinds with one method share its brackets."""
    clauses = []
    for verb, kinds in groupby(footprint.kinds, key=lambda kind: _verb(kind[1])):
        parts: list[str] = []
        for method, alike in groupby(kinds, key=lambda kind: method_of(footprint, kind[0])):
            members = list(alike)
            for kind, quantity in members:
                said = "" if parts else f"{_conjugated(verb, footprint, kind)} "
                text = shown(quantity, beside=footprint.facility_joules)
                amount = text.with_aside(method) if kind == members[-1][0] else text.sentence
                parts.append(f"{_noun(footprint, kind)} {said}{amount}")
        clauses.append(listed(parts))
    left_out = "not included" if is_estimate(footprint) else "not measured"
    covered = f"; readings cover {percent(footprint.covered)} of the time" if footprint.covered < _FULLY_COVERED else ""
    return Sentence(f"{capital(', and '.join(clauses))}; {listed(not_covered(footprint, runs))} were {left_out}{covered}.")


def _verb(quantity: Quantity) -> str:
    return {"measured": "drew", "reported": "reported"}.get(quantity.origin, "estimated")


def _conjugated(verb: str, footprint: Footprint, kind: DeviceKind) -> str:
    if verb == "drew":
        return verb
    return f"{'are' if _noun(footprint, kind) in _MANY.values() else 'is'} {verb} at"


_MANY: dict[DeviceKind, str] = {"gpu": "the GPUs", "cpu": "the processors", "node": "the nodes as a whole", "other": "other devices"}
_ONE: dict[DeviceKind, str] = {"gpu": "the GPU", "cpu": "the processors", "node": "the node as a whole", "other": "another device"}


def _noun(footprint: Footprint, kind: DeviceKind) -> str:
    count = sum(d.count for d in footprint.devices if d.kind == kind)
    return (_ONE if count == 1 else _MANY).get(kind, "the memory")


def method_of(footprint: Footprint, kind: DeviceKind) -> str:
    """How the energy of one kind of device is known."""
    devices = [d for d in footprint.devices if d.kind == kind]
    methods = list(dict.fromkeys(d.method for d in devices))
    if kind != "gpu":
        return listed(list(dict.fromkeys(counters_in_words(kind, method) for method in methods)))
    texts = [text] if (text := sensors_in_words(methods, gpu_count(footprint))) else []
    sources = list(dict.fromkeys(unbracketed(d.source) for d in devices if d.method == "model"))
    return "; ".join([*texts, *sources[:_MOST_METHODS], *(["and others"] if len(sources) > _MOST_METHODS else [])])


def facility(footprint: Footprint, runs: Sequence[ChargedRun]) -> Sentence:
    """Energy at the facility’s meter, and the PUE that makes it that."""
    article = {"assumed": "an assumed PUE", "estimated": "a modelled PUE"}.get(footprint.pue.origin, "a PUE")
    basis = unbracketed(pue_basis(footprint, runs))
    joules = shown(footprint.facility_joules).sentence
    verb = "that makes {} at the facility’s meter" if is_mostly_estimate(footprint) else "the facility used {}"
    gpus = "GPU" if gpu_count(footprint) == 1 else "GPUs"
    alone = f" for the {gpus} alone" if is_gpu_only(footprint) else ""
    return Sentence(f"At {article} of {shown(footprint.pue).sentence} ({basis}) {verb.format(joules)}{alone}.")


def pue_basis(footprint: Footprint, runs: Sequence[ChargedRun]) -> str:
    """Where the PUE comes from; where runs have several, each with its value."""
    if len({c.pue_source for c in runs}) < 2:
        return without_class(footprint.pue.source)
    values: dict[str, list[float]] = {}
    for c in runs:
        values.setdefault(without_class(c.pue_source), []).extend(c.pue.tolist())
    return "; ".join(f"{math.fsum(v) / len(v):.2f}, {source}" for source, v in values.items())


def without_class(source: str) -> str:
    """The source of a PUE without the name of its class, which is a word of the command line."""
    return source.partition(": ")[2] if source.startswith("class ") else source
