"""Regular expressions of filters, in linear time: no pattern can hang on any input.

The stock engine backtracks: `(a+)+b` against forty letters runs for years, and both the pattern and
the traffic may come from an attacker. RE2 never backtracks; it has no look-around and no back
references. Case is ignored unless the pattern says `(?-i)`, as in Wireshark.
"""

from __future__ import annotations

from kafkascope.analyzer.filter.limits import LIMITS


class RegexError(ValueError):
    """A pattern that is invalid or needs features that RE2 lacks."""


class Regex:
    """A compiled pattern."""

    def __init__(self, pattern: str) -> None:
        # Imported here: only filters with a regex need it.
        import re2

        if len(pattern) > LIMITS.pattern_chars:
            raise RegexError(
                f"the regular expression has more than {LIMITS.pattern_chars} characters"
            )
        options = re2.Options()
        options.case_sensitive = False
        options.log_errors = False
        self.pattern = pattern
        try:
            self._compiled = re2.compile(pattern.encode("utf-8", "replace"), options)
        except re2.error as error:
            reason = error.args[0]
            if isinstance(reason, bytes):
                reason = reason.decode("utf-8", "replace")
            raise RegexError(f"{reason} (in the regex)") from None

    def search(self, text: str) -> bool:
        """Return whether the text has a match anywhere; time grows linearly with its length."""
        return self._compiled.search(text.encode("utf-8", "replace")) is not None
