"""The price of every piece of energy: its facility energy and emissions, each moment at its own PUE and intensity, cut at local months."""

from typing import Any

import numpy as np

from carbonreport.audit.queries import Queries
from carbonreport.audit.window import Window
from carbonreport.model.series import Array
from carbonreport.units import HOUR_US, JOULES_PER_KWH, MJ_PER_J, US_PER_S

QUARTER_US = HOUR_US // 4


def price(db: Queries, window: Window, edges_s: Array, pue: Array, grams_per_kwh: Array) -> None:
    """Give every piece its facility energy and emissions, moment by moment. Shape (n + 1,), (n,), (n,).

    The integrals of PUE and of PUE times intensity at quarter hours make it a difference of two look-ups for each piece.
    """
    base = window.from_us // QUARTER_US
    count = -(-window.until_us // QUARTER_US) - base
    ticks_s = (base + np.arange(count + 1)) * (QUARTER_US / US_PER_S)
    lengths = np.diff(edges_s)
    sums = [np.interp(ticks_s, edges_s, np.concatenate([[0.0], np.cumsum(lengths * values)])) for values in (pue, pue * grams_per_kwh)]
    # The window's ends need not be quarters: beyond them the first and last value go on.
    for cumulative, values in zip(sums, (pue, pue * grams_per_kwh), strict=True):
        cumulative += np.where(ticks_s < edges_s[0], (ticks_s - edges_s[0]) * values[0], 0.0) + np.where(
            ticks_s > edges_s[-1], (ticks_s - edges_s[-1]) * values[-1], 0.0
        )
    ticks = {
        "q": base + np.arange(count),
        "facility": sums[0][:-1],
        "facility_slope": np.diff(sums[0]) / QUARTER_US,
        "grams": sums[1][:-1],
        "grams_slope": np.diff(sums[1]) / QUARTER_US,
    }
    months = {"month": list(window.months), "m_from": list(window.edges_us[:-1]), "m_until": list(window.edges_us[1:])}
    db.keep("audit_ticks", ticks)
    db.keep("audit_months", months)
    db.con.execute(f"CREATE OR REPLACE TABLE audit_priced AS {db.sql(_priced(db))}")


def _priced(db: Queries) -> Any:
    ibis = db.ibis
    pieces, months, ticks = (db.table(f"audit_{name}") for name in ("pieces", "months", "ticks"))
    cut = pieces.join(months, [pieces.start_us < months.m_until, pieces.end_us > months.m_from])
    cut = cut.mutate(a=ibis.greatest(cut.start_us, cut.m_from), b=ibis.least(cut.end_us, cut.m_until))
    length = (cut.end_us - cut.start_us).cast("float64")

    def upto(t: Any) -> Any:
        return (cut.energy_mj * ((t - cut.start_us) / length)).round().cast("int64")

    cut = cut.mutate(
        mj=upto(cut.b) - upto(cut.a),
        covered=(cut.covered_us * ((cut.b - cut.a) / length)).round().cast("int64"),
        qa=cut.a // QUARTER_US,
        qb=(cut.b - 1) // QUARTER_US,
    )
    begin = ticks.rename(a_facility="facility", a_facility_slope="facility_slope", a_grams="grams", a_grams_slope="grams_slope", qa="q")
    end = ticks.rename(b_facility="facility", b_facility_slope="facility_slope", b_grams="grams", b_grams_slope="grams_slope", qb="q")
    t = cut.join(begin, "qa").join(end, "qb")

    def between(name: str) -> Any:
        at_b = t[f"b_{name}"] + t[f"b_{name}_slope"] * (t.b - t.qb * QUARTER_US)
        return at_b - (t[f"a_{name}"] + t[f"a_{name}_slope"] * (t.a - t.qa * QUARTER_US))

    seconds = (t.b - t.a) / float(US_PER_S)
    joules = t.mj / float(MJ_PER_J)
    return t.select(
        "use",
        "known",
        "method",
        "job_no",
        "gpu_model",
        "month",
        "mj",
        "covered",
        "is_split",
        "why",
        facility_joules=joules * between("facility") / seconds,
        grams=joules * between("grams") / seconds / JOULES_PER_KWH,
    )
