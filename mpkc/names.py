"""What to say about a name that there is not."""

from collections.abc import Iterable
from difflib import get_close_matches


def no_such(what: str, name: str, known: Iterable[str], hidden: Iterable[str] = (), where: str = "") -> str:
    """`no WHAT is named NAME`, and the names that there are, those that look alike first.

    Args:
        known: the names that are listed.
        hidden: further names, listed only where they look alike; `where` says how to see them all.
    """
    known, hidden = list(known), [other for other in hidden if other not in set(known)]
    close = get_close_matches(name, [*known, *hidden], n=3)
    listed = [*close, *(other for other in known if other not in close)]
    guess = f": did you mean {close[0]}? There" if close else "; there"
    more = f", and {len(hidden)} more: {where}" if hidden else ""
    return f"no {what} is named {name!r}{guess} are: {', '.join(listed) or 'none'}{more}"
