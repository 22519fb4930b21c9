"""Write the table of notes into README.md, from carbonreport/model/notes.py: python scripts/readme_notes.py."""

from pathlib import Path

from carbonreport.model.notes import SLUGS

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- notes: begin (scripts/readme_notes.py) -->", "<!-- notes: end -->"


def with_table(readme: str) -> str:
    """The README with the table between its two marks."""
    before, rest = readme.split(BEGIN)
    _, after = rest.split(END)
    rows = "\n".join(f"| `{slug}` | {meaning} |" for slug, meaning in sorted(SLUGS.items()))
    return f"{before}{BEGIN}\n| note | what it says |\n|---|---|\n{rows}\n{END}{after}"


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
