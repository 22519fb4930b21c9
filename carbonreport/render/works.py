"""What a statement cites: the tool, and the data that it leans on."""

from carbonreport.model.statement import Work

TOOL = Work(
    "carbonreport",
    "misc",
    (
        ("title", "carbonreport: energy and carbon of machine learning"),
        ("author", "{The carbonreport authors}"),
        ("year", "2026"),
        ("note", "Software; docs/method.md says how each number is made"),
    ),
)
_DATA = {
    "Electricity Maps": Work(
        "electricitymaps",
        "misc",
        (
            ("title", "Carbon intensity of electricity, data portal"),
            ("author", "{Electricity Maps}"),
            ("year", "2026"),
            ("note", "Open Database License 1.0"),
        ),
    ),
    "Ember": Work(
        "ember",
        "misc",
        (("title", "Yearly electricity data"), ("author", "{Ember}"), ("year", "2026"), ("note", "CC BY 4.0")),
    ),
}


def works_of(source: str) -> list[Work]:
    """Works behind a source of intensities."""
    return [work for name, work in _DATA.items() if name in source]
