"""Text from outside, made safe to store and show."""

import unicodedata


def clean(text: str) -> str:
    """Return external text with control characters replaced and lone surrogates escaped, safe to store and show."""
    if text.isprintable():  # the common case
        return text
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(
        c if c.isprintable() or unicodedata.category(c) == "Zs" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


# Joiners are part of Persian and Indic names; a wide space fills up Chinese names of two characters.
_IN_NAMES = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}\N{IDEOGRAPHIC SPACE}"


def clean_name(name: str) -> str:
    r"""Return a name from outside, safe to store and show; different names stay different.

    What cannot be printed is written as an escape such as ``\x07``, and a backslash as two.
    """
    return "".join(c if _shown(c) else c.encode("unicode_escape").decode() for c in name)


def one_form(name: str) -> str:
    """Return a student's name in the form of Unicode that the gradebook knows: macOS and the others differ in accents."""
    return unicodedata.normalize("NFC", name)


def _shown(character: str) -> bool:
    return (character.isprintable() and character != "\\") or character in _IN_NAMES
