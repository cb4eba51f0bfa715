"""Regular expressions for names of variables, which never keep anybody waiting.

Python's own matcher tries one way of reading a name after another, and `(a+)+b` keeps it busy for centuries.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from gflowdag.errors import KnowledgeError

_LONGEST = 1000  # characters of an expression; longer ones take seconds to compile
_PATIENCE = 1.0  # seconds of the processor for all names together


def matching(expression: str, names: Sequence[str]) -> list[int]:
    """Positions of the names that the regular expression matches as a whole.

    Raises:
        KnowledgeError: it is no regular expression, is too long, or takes too long to match.
    """
    import regex  # here: few names are told by an expression

    if len(expression) > _LONGEST:
        raise KnowledgeError(
            f"A regular expression has {len(expression):,} characters, at most {_LONGEST:,}."
        )
    deadline = time.process_time() + _PATIENCE
    found = []
    try:
        pattern = regex.compile(expression)
        for index, name in enumerate(names):
            if pattern.fullmatch(name, timeout=max(deadline - time.process_time(), 0.001)):
                found.append(index)
    except TimeoutError as error:
        raise KnowledgeError(
            f"The regular expression {expression!r} takes too long to match: write a simpler one."
        ) from error
    except (regex.error, OverflowError, RecursionError) as error:
        raise KnowledgeError(
            f"{expression!r} is not a regular expression that can be used here: {error}."
        ) from error
    return found
