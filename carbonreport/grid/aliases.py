"""What others call the zones: ENTSO-E, EIA, WattTime, clouds, and names that are no longer published. Stdlib only, and loaded only when needed."""

import csv
from collections.abc import Container, Iterable
from functools import lru_cache
from pathlib import Path

from carbonreport.errors import UnknownZone

DATA = Path(__file__).resolve().parent.parent / "data"

# ENTSO-E: names of bidding zones that are not the country's code with a number, and codes (EIC); in capitals and with hyphens.
ENTSOE = {
    "IT-NORD": "IT-NO",
    "IT-CNOR": "IT-CNO",
    "IT-CSUD": "IT-CSO",
    "IT-SUD": "IT-SO",
    "IT-SICI": "IT-SIC",
    "IT-SARD": "IT-SAR",
    "NIE": "GB-NIR",
    "IE(SEM)": "IE",
    "10YAT-APG------L": "AT",
    "10YBE----------2": "BE",
    "10YCA-BULGARIA-R": "BG",
    "10YCH-SWISSGRIDZ": "CH",
    "10YCZ-CEPS-----N": "CZ",
    "10Y1001A1001A82H": "DE",
    "10YDK-1--------W": "DK-DK1",
    "10YDK-2--------M": "DK-DK2",
    "10Y1001A1001A39I": "EE",
    "10YES-REE------0": "ES",
    "10YFI-1--------U": "FI",
    "10YFR-RTE------C": "FR",
    "10YGB----------A": "GB",
    "10YGR-HTSO-----Y": "GR",
    "10YHR-HEP------M": "HR",
    "10YHU-MAVIR----U": "HU",
    "10Y1001A1001A59C": "IE",
    "10Y1001A1001A73I": "IT-NO",
    "10YLT-1001A0008Q": "LT",
    "10YLV-1001A00074": "LV",
    "10YNL----------L": "NL",
    "10YNO-1--------2": "NO-NO1",
    "10YNO-2--------T": "NO-NO2",
    "10YNO-3--------J": "NO-NO3",
    "10YNO-4--------9": "NO-NO4",
    "10Y1001A1001A48H": "NO-NO5",
    "10YPL-AREA-----S": "PL",
    "10YPT-REN------W": "PT",
    "10YRO-TEL------P": "RO",
    "10YCS-SERBIATSOV": "RS",
    "10Y1001A1001A44P": "SE-SE1",
    "10Y1001A1001A45N": "SE-SE2",
    "10Y1001A1001A46L": "SE-SE3",
    "10Y1001A1001A47J": "SE-SE4",
    "10YSI-ELES-----O": "SI",
    "10YSK-SEPS-----K": "SK",
}

# WattTime's regions by zone; where a zone holds several, the one of its data centres.
WATTTIME = {
    "US-CAL-CISO": "CAISO_NORTH",
    "US-CAL-LDWP": "LDWP",
    "US-CAR-SC": "SC",
    "US-MIDA-PJM": "PJM_DC",
    "US-MIDW-MISO": "MISO_MASON_CITY",
    "US-NW-BPAT": "BPA",
    "US-NW-NEVP": "NEVP",
    "US-NW-PACE": "PACE",
    "US-NW-WACM": "WACM",
    "US-SE-SOCO": "SOCO",
    "US-SW-AZPS": "AZPS",
    "US-TEX-ERCO": "ERCOT_NORTHCENTRAL",
    "AU-NSW": "NEM_NSW",
    "AU-VIC": "NEM_VIC",
    "CA-ON": "IESO_NORTH",
    "CA-QC": "HQ",
    "JP-KN": "JP_KN",
    "JP-TK": "JP_TK",
    "AE": "ARE",
    "BH": "BHR",
    "BR-CS": "BRA",
    "CL-SEN": "CHL",
    "CN": "CHN",
    "GB": "UK",
    "HK": "HKG",
    "ID": "IDN",
    "IL": "ISR",
    "IN": "IND",
    "IN-SO": "IND",
    "IN-WE": "IND",
    "IT-NO": "IT",
    "KR": "KOR",
    "MX": "MX_SIN",
    "NZ": "NZL",
    "QA": "QAT",
    "SA": "SAU",
    "SG": "SGP",
    "TW": "TWN",
    "ZA": "ZAF",
} | {zone: zone for zone in ("AT", "BE", "CH", "DE", "DK", "ES", "FI", "FR", "GR", "IE", "IT", "NL", "PL", "SE")}
WATTTIME_ALSO = {
    "PJM-SOUTHWEST-OH": "US-MIDA-PJM",
    "MISO-SPRINGFIELD": "US-MIDW-MISO",
    "ERCOT-SANANTONIO": "US-TEX-ERCO",
    "CAISO-SOUTH": "US-CAL-CISO",
}

# Regions of clouds that publish no PUE of them, and so are not in the table of regions.
CLOUD_ALSO = {
    "aws:ap-east-1": "HK",
    "aws:ap-northeast-2": "KR",
    "aws:ap-northeast-3": "JP-KN",
    "aws:ca-west-1": "CA-AB",
    "aws:cn-north-1": "CN",
    "aws:cn-northwest-1": "CN",
    "aws:eu-central-2": "CH",
    "aws:eu-south-1": "IT-NO",
    "aws:eu-west-2": "GB",
    "aws:eu-west-3": "FR",
    "aws:il-central-1": "IL",
    "aws:us-gov-east-1": "US-MIDA-PJM",
    "aws:us-gov-west-1": "US-NW-BPAT",
    "azure:francecentral": "FR",
    "azure:germanywestcentral": "DE",
    "azure:japaneast": "JP-TK",
    "azure:japanwest": "JP-KN",
    "azure:koreacentral": "KR",
    "azure:norwayeast": "NO-NO1",
    "azure:southafricanorth": "ZA",
    "azure:switzerlandnorth": "CH",
    "azure:uksouth": "GB",
    "azure:ukwest": "GB",
    "azure:westus2": "US-NW-GCPD",
    "azure:westus3": "US-SW-AZPS",
    "gcp:africa-south1": "ZA",
    "gcp:asia-east2": "HK",
    "gcp:asia-northeast1": "JP-TK",
    "gcp:asia-northeast2": "JP-KN",
    "gcp:asia-northeast3": "KR",
    "gcp:asia-south1": "IN-WE",
    "gcp:asia-south2": "IN-NO",
    "gcp:asia-southeast2": "ID",
    "gcp:australia-southeast1": "AU-NSW",
    "gcp:australia-southeast2": "AU-VIC",
    "gcp:europe-central2": "PL",
    "gcp:europe-southwest1": "ES",
    "gcp:europe-west2": "GB",
    "gcp:europe-west3": "DE",
    "gcp:europe-west6": "CH",
    "gcp:europe-west8": "IT-NO",
    "gcp:europe-west9": "FR",
    "gcp:europe-west12": "IT-NO",
    "gcp:me-central2": "SA",
    "gcp:me-west1": "IL",
    "gcp:northamerica-northeast1": "CA-QC",
    "gcp:northamerica-northeast2": "CA-ON",
    "gcp:southamerica-east1": "BR-CS",
    "gcp:us-west2": "US-CAL-LDWP",
    "gcp:us-west3": "US-NW-PACE",
}

# Zones that Electricity Maps has given up -> where their hours are now.
RETIRED = {
    **{f"IN-{s}": "IN-NO" for s in ["CH", "DL", "HP", "HR", "JK", "PB", "RJ", "UP", "UT"]},
    **{f"IN-{s}": "IN-WE" for s in ["CT", "DD", "DN", "GA", "GJ", "MH", "MP"]},
    **{f"IN-{s}": "IN-SO" for s in ["AP", "KA", "KL", "PY", "TG", "TN"]},
    **{f"IN-{s}": "IN-EA" for s in ["BR", "JH", "OR", "WB"]},
    **{f"IN-{s}": "IN-NE" for s in ["AR", "AS", "ML", "MN", "MZ", "NL", "TR"]},
    **{f"MX-{s}": "MX" for s in ["BC", "BCS", "CE", "NE", "NO", "NW", "OR", "PN"]},
    **{f"US-HI-{s}": "US-HI" for s in ["HA", "KA", "KH", "LA", "MA", "MO", "NI", "OA"]},
    **{f"VN-{s}": "VN" for s in ["C", "N", "S"]},
    "CA-NL-LB": "CA-NL",
    "CA-NL-NF": "CA-NL",
    "CL-SIC": "CL-SEN",
    "CL-SING": "CL-SEN",
    "ES-CN-FVLZ": "ES-CN-FV",
    "US-SE-AEC": "US-SE-SOCO",
}
# Codes of EIA's balancing authorities that mean something else in plain words.
_NO_NAMES = frozenset({"GRID"})


def other_name(key: str, zones: Iterable[str]) -> str | None:
    """The zone that others call so, or None.

    Args:
        key: Name in capitals and with hyphens.
        zones: Codes of the table of zones; EIA's code of a balancing authority is the last part of its zone.
    """
    if key in ENTSOE:
        return ENTSOE[key]
    if key in _watttime_regions():
        return _watttime_regions()[key]
    cloud = _cloud_zones(DATA)
    if (region := key.lower()) in cloud:
        return cloud[region]
    authorities = [zone for zone in zones if zone.startswith("US-") and zone.rpartition("-")[2] == key and key not in _NO_NAMES]
    return authorities[0] if len(authorities) == 1 else None


def successor(key: str, zones: Container[str]) -> str | None:
    """Where the hours of a retired zone are now, None for one that was not retired or is still in the table."""
    return RETIRED.get(key) if key not in zones else None


def watttime_region(zone: str) -> str:
    """WattTime's name of the zone.

    Raises:
        UnknownZone: None is known.
    """
    if zone not in WATTTIME:
        same = [z for z in WATTTIME if z.split("-")[0] == zone.split("-")[0]][:3]
        raise UnknownZone(zone, [f"{z}, which WattTime has" for z in same])
    return WATTTIME[zone]


@lru_cache(maxsize=1)
def _watttime_regions() -> dict[str, str]:
    """Region, in capitals and with hyphens -> zone; the first zone of those that share one."""
    return {region.replace("_", "-"): zone for zone, region in reversed(WATTTIME.items())} | WATTTIME_ALSO


@lru_cache(maxsize=4)
def _cloud_zones(data: Path) -> dict[str, str]:
    """Region with its cloud (aws:eu-central-1) and, where one cloud alone has that name, without it -> zone."""
    with (data / "cloud_regions.csv").open(encoding="utf-8", newline="") as file:
        found = {f"{row['provider']}:{row['region']}": row["zone"] for row in csv.DictReader(file) if row["zone"]} | CLOUD_ALSO
    names = [full.partition(":")[2] for full in found]
    return found | {name: zone for name, zone in zip(names, list(found.values()), strict=True) if names.count(name) == 1}
