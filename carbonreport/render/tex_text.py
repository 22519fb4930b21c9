"""Any text as LaTeX text that plain pdflatex sets: ASCII alone, whatever came in."""

import re
import unicodedata
from collections.abc import Iterable

_GREEK_SMALL = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "nu", "xi", "pi", "rho", "varsigma", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega")  # fmt: skip
_GREEK_CAPITAL = ("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega")
_GREEK = dict(zip("αβγδεζηθικλνξπρςστυφχψωΓΔΘΛΞΠΣΥΦΨΩ", _GREEK_SMALL + _GREEK_CAPITAL, strict=True))
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\(\mathdollar\)",  # \$ is of a font that a small TeX may lack
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\(<\)",
    ">": r"\(>\)",
    "|": r"\(|\)",
    '"': "''",
    "`": r"\textquoteleft{}",
    "\u00a0": "~",
    "\u202f": r"\,",
    "\u2009": r"\,",
    "–": "--",
    "—": "---",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "„": ",,",
    "…": r"\ldots{}",
    "\u200b": r"\allowbreak{}",
    "×": r"\(\times\)",
    "÷": r"\(\div\)",
    "±": r"\(\pm\)",
    "−": r"\(-\)",
    "≤": r"\(\le\)",
    "≥": r"\(\ge\)",
    "≈": r"\(\approx\)",
    "·": r"\(\cdot\)",
    "µ": r"\(\mu\)",
    "μ": r"\(\mu\)",
    "°": r"\(^\circ\)",
    "→": r"\(\to\)",
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    "ı": r"\i{}",
    "§": r"\(\mathsection\)",
    "©": "(C)",
    "£": "GBP",
    "€": "EUR",
    "™": "(TM)",
    "®": "(R)",
    **{chr(0x2080 + n): rf"\(_{n}\)" for n in range(10)},
    **{letter: rf"\(\{name}\)" for letter, name in _GREEK.items()},
    "²": r"\(^2\)",
    "³": r"\(^3\)",
}
# Combining accents that the text font of plain LaTeX has.
_ACCENTS = {
    "\u0300": r"\`",
    "\u0301": r"\'",
    "\u0302": r"\^",
    "\u0303": r"\~",
    "\u0304": r"\=",
    "\u0306": r"\u",
    "\u0307": r"\.",
    "\u0308": r"\"",
    "\u030a": r"\r",
    "\u030b": r"\H",
    "\u030c": r"\v",
    "\u0323": r"\d",
    "\u0327": r"\c",
}
_LONG_WORDS = re.compile(r"[^\s\-–]{24,}")
_PERCENT = re.compile(r"(?<=\d) (?=%)")  # the blank between a number and its sign, which must not end a line
_TENS = re.compile(r".{10}(?=.{2})")
_CLUSTERS = re.compile(r"(?s).[\u0300-\u036f]*")
_INVISIBLE = ("Cf", "Cc", "Cs", "Co", "Cn", "Mn", "Me")


def escape(text: str) -> str:
    """Any text as LaTeX text: specials escaped, accents composed, line breaks blanks, and what no font has by its code point."""
    pieces: list[str] = []
    missing: list[str] = []
    unbroken = _PERCENT.sub("\u00a0", unicodedata.normalize("NFC", text))
    breakable = _LONG_WORDS.sub(lambda word: _TENS.sub("\\g<0>\u200b", word.group()), unbroken)
    for cluster in _CLUSTERS.findall(breakable):
        piece = _cluster(cluster)
        if piece is None:
            missing.append(f"U+{ord(cluster[0]):04X}")
            continue
        pieces += _codes(missing)
        pieces.append(f"{{}}{piece}" if pieces and pieces[-1][-1:] == piece[:1] == "-" else piece)  # two hyphens are no dash
    return "".join([*pieces, *_codes(missing)])


def _codes(missing: list[str]) -> list[str]:
    """The code points of a stretch that no font has, in one pair of brackets; empties the list."""
    codes = [f"({' '.join(missing)})"] if missing else []
    missing.clear()
    return codes


def _cluster(cluster: str) -> str | None:
    """A character with its combining marks; None where plain LaTeX has nothing for it."""
    first, marks = cluster[0], list(cluster[1:])
    if first in _SPECIAL:
        return _SPECIAL[first]
    if first.isascii():
        return _accented(first, marks) if first.isprintable() else " "
    base, *inner = list(unicodedata.normalize("NFKD", first))
    if base.isascii() and base.isalpha() and all(unicodedata.combining(mark) for mark in inner):
        return _accented(base, [*inner, *marks])
    if unicodedata.combining(first) or unicodedata.category(first) in _INVISIBLE:
        return ""
    if first.isspace():
        return " "
    decomposed = [base, *inner]
    if all(c.isascii() and c.isprintable() for c in decomposed):  # ligatures, wide letters, signs such as TM
        return "".join(_SPECIAL.get(c, c) for c in decomposed)
    return None


def _accented(base: str, marks: Iterable[str]) -> str:
    """A letter under its accents, two at most; one that the font lacks is left out."""
    known = [_ACCENTS[mark] for mark in marks if mark in _ACCENTS][:2]
    if not known or not base.isalpha():
        return base
    text = {"i": r"\i", "j": r"\j"}.get(base, base) if known[0] != r"\c" else base
    for accent in known:
        text = f"{accent}{{{text}}}"
    return text
