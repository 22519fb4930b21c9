"""Builds the embedded grid tables from a folder of raw data: `build_grid_data.py RAW_FOLDER [OUT_FOLDER]`.

RAW_FOLDER holds `grid/` (hourly files, yearly averages, time zones, the reference table of shapes) and `method/` (error
numbers of zones with a single year of hours, or with none; those of the others are made here). The result is the same byte for byte on every run. What comes from Electricity Maps goes to `odbl/`, which has a licence of its own.
"""

import csv
import gzip
import io
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from grid_errors import residuals, terms
from grid_shapes import misses, shape, typical_relative, typical_shape, weekend_ratio, whole_years
from numpy.typing import NDArray

Array = NDArray[np.float64]
Row = dict[str, str]
# Time zone, and hours by year, of each zone with hours. [gCO2e/kWh]
Years = dict[str, tuple[str, dict[int, Array]]]

YEARS = (2021, 2022, 2023, 2024, 2025)
# A recomputed shape may differ from the reference table by this much; the table itself is rounded to 0.001.
TOLERANCE = 0.01
# Data sets with hours, the better one first; the third is the file of the single year 2022.
DATASETS = ("em_2021_2024_sustaincluster", "em_2021_2023_umass", "em2022_umass")
DATASET_YEARS = {DATASETS[0]: "2021-2024", DATASETS[1]: "2021-2023", DATASETS[2]: "2022"}

# Hours that do not change at all, or that mostly repeat the hour before: a day curve made of them would be an artefact.
CONSTANT = frozenset({"HK", "ID", "US-NW-SCL", "IL", "IN-UP", "KR", "US-NW-CHPD", "US-NW-DOPD"})
# Every hour was estimated by the provider.
ESTIMATED = frozenset({"IN-WE", "JP-TK"})
# No longer published under this name -> the zone that took its place, where one did.
RETIRED = {"DK-BHM": "", "IN-MH": "IN-WE", "IN-UP": "IN-NO", "US-HI-OA": "US-HI", "US-NW-WACM": "", "US-NW-WAUW": ""}
# Zones that the yearly table does not name.
NAMES = {"IN-MH": "Maharashtra", "IN-UP": "Uttar Pradesh", "US-HI-OA": "Oahu"}
# Zones that the table of time zones leaves out.
TIME_ZONES = {"GB-ORK": "Europe/London"}
ERROR_FIELDS = ("sd_fast_6h", "sd_synoptic_48h", "sd_slow_60d", "sd_level_per_sqrt_year")
ZONE_FIELDS = ("zone", "name", "time_zone", "dataset", *(f"level_{year}" for year in YEARS), *ERROR_FIELDS, "marks", "successor", "country")

# ISO 3166-1 alpha-3 to alpha-2 of the countries in Ember's table; Kosovo has a user-assigned code.
_ISO_PAIRS = """
ABW:AW AFG:AF AGO:AO ALB:AL ARE:AE ARG:AR ARM:AM ASM:AS ATG:AG AUS:AU AUT:AT AZE:AZ BDI:BI BEL:BE BEN:BJ BFA:BF BGD:BD BGR:BG
BHR:BH BHS:BS BIH:BA BLR:BY BLZ:BZ BOL:BO BRA:BR BRB:BB BRN:BN BTN:BT BWA:BW CAF:CF CAN:CA CHE:CH CHL:CL CHN:CN CIV:CI CMR:CM
COD:CD COG:CG COK:CK COL:CO COM:KM CPV:CV CRI:CR CUB:CU CYM:KY CYP:CY CZE:CZ DEU:DE DJI:DJ DMA:DM DNK:DK DOM:DO DZA:DZ ECU:EC
EGY:EG ERI:ER ESP:ES EST:EE ETH:ET FIN:FI FJI:FJ FLK:FK FRA:FR FRO:FO GAB:GA GBR:GB GEO:GE GHA:GH GIN:GN GLP:GP GMB:GM GNB:GW
GNQ:GQ GRC:GR GRD:GD GRL:GL GTM:GT GUF:GF GUM:GU GUY:GY HKG:HK HND:HN HRV:HR HTI:HT HUN:HU IDN:ID IND:IN IRL:IE IRN:IR IRQ:IQ
ISL:IS ISR:IL ITA:IT JAM:JM JOR:JO JPN:JP KAZ:KZ KEN:KE KGZ:KG KHM:KH KIR:KI KNA:KN KOR:KR KWT:KW LAO:LA LBN:LB LBR:LR LBY:LY
LCA:LC LKA:LK LSO:LS LTU:LT LUX:LU LVA:LV MAC:MO MAR:MA MDA:MD MDG:MG MDV:MV MEX:MX MKD:MK MLI:ML MLT:MT MMR:MM MNE:ME MNG:MN
MOZ:MZ MRT:MR MSR:MS MTQ:MQ MUS:MU MWI:MW MYS:MY NAM:NA NCL:NC NER:NE NGA:NG NIC:NI NLD:NL NOR:NO NPL:NP NRU:NR NZL:NZ OMN:OM
PAK:PK PAN:PA PER:PE PHL:PH PNG:PG POL:PL PRI:PR PRK:KP PRT:PT PRY:PY PSE:PS PYF:PF QAT:QA REU:RE ROU:RO RUS:RU RWA:RW SAU:SA
SDN:SD SEN:SN SGP:SG SLB:SB SLE:SL SLV:SV SOM:SO SPM:PM SRB:RS SSD:SS STP:ST SUR:SR SVK:SK SVN:SI SWE:SE SWZ:SZ SYC:SC SYR:SY
TCA:TC TCD:TD TGO:TG THA:TH TJK:TJ TKM:TM TON:TO TTO:TT TUN:TN TUR:TR TWN:TW TZA:TZ UGA:UG UKR:UA URY:UY USA:US UZB:UZ VCT:VC
VEN:VE VGB:VG VIR:VI VNM:VN VUT:VU WSM:WS XKX:XK YEM:YE ZAF:ZA ZMB:ZM ZWE:ZW
"""
ISO2 = dict(pair.split(":") for pair in _ISO_PAIRS.split())


def build(raw: Path, out: Path) -> None:
    """Write `odbl/zones.csv`, `shapes.csv.gz`, `weekends.csv`, `direct.csv` and `held_out.csv`, and `ember_yearly.csv` below `out`."""
    averages = list(_rows(raw / "grid" / "annual_averages.csv"))
    time_zones = {row["zone"]: row["tz"] for row in _rows(raw / "grid" / "zone_timezones.csv")} | TIME_ZONES
    table = {row["zone"]: row for row in _rows(raw / "grid" / "shape_12x24.csv.gz") if row["basis"] == "local"}
    hours = _hours(raw / "grid")
    _check({zone: shape(time_zones[zone], start_s, grams) for zone, (_, start_s, grams) in hours.items()}, table)
    datasets = {zone: dataset for zone, (dataset, _, _) in hours.items()}
    means = {zone: math.fsum(grams) / grams.size for zone, (_, _, grams) in hours.items()}
    years: Years = {zone: (time_zones[zone], whole_years(start_s, grams)) for zone, (_, start_s, grams) in sorted(hours.items())}
    errors = {row["zone"]: row for row in _rows(raw / "method" / "grid_profile_error.csv")}
    errors |= {zone: _own_errors(errors[zone], *years[zone]) for zone in years if len(years[zone][1]) > 1 and zone not in CONSTANT}
    (out / "odbl").mkdir(parents=True, exist_ok=True)
    _write(out / "odbl" / "zones.csv", _zone_rows(raw, averages, time_zones, datasets, means, errors))
    _write_gz(out / "odbl" / "shapes.csv.gz", _shape_rows(years))
    _write(out / "odbl" / "weekends.csv", _weekend_rows(years))
    _write(out / "odbl" / "direct.csv", _direct_rows(raw))
    _write(out / "odbl" / "held_out.csv", _held_out_rows(years))
    _write(out / "ember_yearly.csv", _ember_rows(averages))


def _hours(folder: Path) -> dict[str, tuple[str, float, Array]]:
    """Zone -> (data set, begin of the first hour, intensities), from the best data set that has the zone."""
    found: dict[str, tuple[str, float, Array]] = {}
    wide = list(_rows(folder / "hourly_2022_123zones_lifecycle.csv.gz"))
    times = _hourly_times([row["datetime_utc"][:13].replace(" ", "T") for row in wide], "the file of 2022")
    for zone in wide[0]:
        if zone != "datetime_utc":
            found[zone] = (DATASETS[2], times, np.array([float(row[zone]) for row in wide]))
    tall: dict[tuple[str, str], tuple[list[str], list[float]]] = defaultdict(lambda: ([], []))
    for row in _rows(folder / "hourly_2021_2024_20zones_direct_lifecycle.csv.gz"):
        if row["factor"] == "lifecycle":
            stamps, grams = tall[row["dataset"], row["zone"]]
            stamps.append(row["datetime_utc"][:13])
            grams.append(float(row["g_per_kwh"]))
    for dataset in (DATASETS[1], DATASETS[0]):
        for (name, zone), (stamps, grams) in tall.items():
            if name == dataset:
                found[zone] = (dataset, _hourly_times(stamps, f"{dataset} {zone}"), np.array(grams))
    return found


def _hourly_times(stamps: list[str], where: str) -> float:
    """Begin of the first hour, after a look that every hour is there, in POSIX seconds."""
    seconds = np.array(stamps, dtype="datetime64[h]").astype("datetime64[s]").astype(np.int64)
    if np.any(np.diff(seconds) != 3600):
        raise SystemExit(f"hours of {where} are not consecutive")
    return float(seconds[0])


def _check(shapes: dict[str, Array], table: dict[str, Row]) -> None:
    """Compare with the reference table, which was computed by another program."""
    if set(shapes) != set(table):
        raise SystemExit(f"zones of the hourly files and of the reference table differ: {sorted(set(shapes) ^ set(table))}")
    worst = 0.0
    for zone, own in shapes.items():
        reference = np.array([[float(table[zone][f"m{month:02}h{hour:02}"]) for hour in range(24)] for month in range(1, 13)])
        difference = float(np.abs(own - reference).max())
        worst = max(worst, difference)
        if difference > TOLERANCE:
            raise SystemExit(f"shape of {zone} differs from the reference table by {difference:.4f}, more than {TOLERANCE}")
    print(f"{len(shapes)} shapes agree with the reference table; largest difference {worst:.5f}")


def _own_errors(given: Row, time_zone: str, years: dict[int, Array]) -> Row:
    """The given error numbers of a zone, those of its shape replaced by what its own years missed of each other."""
    found = terms(residuals(years, lambda year, others: typical_relative(time_zone, year, {other: years[other] for other in others})))
    return given | {field: f"{sd:.4f}" for field, (sd, _) in zip(ERROR_FIELDS[:3], found, strict=True)}


def _zone_rows(
    raw: Path, averages: list[Row], time_zones: dict[str, str], datasets: dict[str, str], means: dict[str, float], errors: dict[str, Row]
) -> Iterator[list[str]]:
    levels: dict[str, dict[int, str]] = defaultdict(dict)
    names = dict(NAMES)
    for row in averages:
        if row["source"] == "electricitymaps_via_co2js":
            levels[row["zone"]][int(row["year"])] = f"{float(row['g_per_kwh']):g}"
            names[row["zone"]] = row["name"]
    for zone in means:
        if zone not in levels:  # retired before the yearly table: the mean of its own hours is all there is
            levels[zone] = {2022: f"{means[zone]:.1f}"}
    classes = list(_rows(raw / "method" / "annual_only_error_by_level.csv"))
    yield list(ZONE_FIELDS)
    for zone in sorted(levels):
        newest = float(levels[zone][max(levels[zone])])
        error = errors[zone] if zone in means else _class_of(newest, classes)
        marks = [mark for mark, zones in (("constant", CONSTANT), ("estimated", ESTIMATED), ("retired", RETIRED)) if zone in zones]
        yield [
            zone,
            names[zone],
            time_zones[zone],
            DATASET_YEARS[datasets[zone]] if zone in datasets else "",
            *(levels[zone].get(year, "") for year in YEARS),
            *(error[field] for field in ERROR_FIELDS),
            " ".join(marks),
            RETIRED.get(zone, ""),
            zone.split("-")[0],
        ]


def _class_of(level: float, classes: list[Row]) -> Row:
    """Error numbers of the zones with a yearly mean of this size: "<50", "50-150", …, ">=500"."""
    for row in classes:
        text = row["level_g_per_kwh"]
        low, high = (
            (0.0, float(text[1:]))
            if text[0] == "<"
            else (float(text[2:]), math.inf)
            if text[0] == ">"
            else tuple(map(float, text.split("-")))
        )
        if low <= level < high:
            return row
    raise SystemExit(f"no error class for a level of {level} g/kWh")


def _shape_rows(years: Years) -> Iterator[list[str]]:
    """Shapes of every zone whose day curve means something; month after month, hour after hour."""
    yield ["zone", *(f"m{month:02}h{hour:02}" for month in range(1, 13) for hour in range(24))]
    for zone, (time_zone, hours) in years.items():
        if zone not in CONSTANT:
            yield [zone, *(f"{value:.4f}" for value in typical_shape(time_zone, hours).ravel())]


def _weekend_rows(years: Years) -> Iterator[list[str]]:
    """Weekends over workdays by local hour, of the zones that have a shape, were not estimated, and whose weekends differ by more than their weeks scatter."""
    yield ["zone", *(f"h{hour:02}" for hour in range(24))]
    for zone, (time_zone, hours) in years.items():
        if zone in CONSTANT | ESTIMATED:
            continue
        ratios = [f"{value:.3f}" for value in weekend_ratio(time_zone, hours)]
        if set(ratios) != {"1.000"}:
            yield [zone, *ratios]


def _direct_rows(raw: Path) -> Iterator[list[str]]:
    """Direct over life-cycle intensity of 2024, by zone; without the zones where the source has it above 1, which no grid can have."""
    yield ["zone", "direct_share"]
    for row in _rows(raw / "method" / "direct_to_lifecycle_2024.csv"):
        if float(row["ratio"]) <= 1:
            yield [row["zone"] or "NA", row["ratio"]]  # Namibia's code reads as "not available" to some programs


def _held_out_rows(years: Years) -> Iterator[list[str]]:
    """How far the months, and the hours of a month, of a zone's last year were off when told by the years before."""
    yield ["zone", "test_year", "month_error_percent", "hour_error_percent"]
    for zone, (time_zone, hours) in years.items():
        if len(hours) > 1:
            month, hour = misses(time_zone, hours)
            yield [zone, str(max(hours)), f"{month * 100:.2f}", f"{hour * 100:.2f}"]


def _ember_rows(averages: list[Row]) -> Iterator[list[str]]:
    """Newest yearly mean of each country, and of the world."""
    yield ["iso3", "iso2", "name", "year", "g_per_kwh"]
    rows = [row for row in averages if row["source"] == "ember_via_co2js"]
    for row in sorted(rows, key=lambda row: row["zone"]):
        code = row["zone"]
        if code in ISO2:
            yield [code, ISO2[code], row["name"], row["year"], row["g_per_kwh"]]
    world = next(row for row in rows if row["zone"] == "World")
    yield ["WORLD", "WORLD", world["name"], world["year"], world["g_per_kwh"]]


def _rows(path: Path) -> Iterator[Row]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") if path.suffix == ".gz" else path.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


def _text(rows: Iterable[list[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _write(path: Path, rows: Iterable[list[str]]) -> None:
    path.write_bytes(_text(rows))


def _write_gz(path: Path, rows: Iterable[list[str]]) -> None:
    """Without file name and date in the header, so that the same rows give the same bytes."""
    with path.open("wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        packed.write(_text(rows))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit("usage: build_grid_data.py RAW_FOLDER [OUT_FOLDER]")
    package_data = Path(__file__).resolve().parent.parent / "carbonreport" / "data"
    build(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) == 3 else package_data)
