"""MkDocs hook: links from docs/ to other folders lead to the repository's pages."""

from __future__ import annotations

import posixpath
import re
from typing import Any

LINK = re.compile(r"(?<=\]\()([^()\s:#]+)(?=[#)])")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Return the page with absolute links to what lies outside of docs/."""
    folder = posixpath.dirname(page.file.src_uri)

    def absolute(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", folder, match[1]))
        inside = path.startswith("docs/")
        return match[1] if inside else f"{config.repo_url.rstrip('/')}/blob/main/{path}"

    return LINK.sub(absolute, markdown)
