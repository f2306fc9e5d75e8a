"""Links within a page or a site that lead nowhere. Those to other hosts are not followed."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Targets in Markdown, and in the HTML that it may hold.
_TARGET = re.compile(r'(?:\]\(|\b(?:src|srcset|href)=")(?!https?:|#|attachment:)([^)"#]+)')


class Links(HTMLParser):
    """The link targets and the anchors of a page."""

    def __init__(self, page: Path):
        super().__init__()
        self.to: set[str] = set()
        self.places: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.places.add(value)
            elif name in ("href", "src"):
                self.to.add(value)


def broken_in_site(site: Path) -> list[str]:
    """Return every link of a built site whose file or anchor is missing, after the page that has it."""
    pages = {path: Links(path) for path in site.rglob("*.html") if "_static" not in path.parts}
    missing = []
    for page, links in pages.items():
        for link in links.to:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "data"):
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            place = unquote(parts.fragment)
            if not target.is_file() or (place and target in pages and place not in pages[target].places):
                missing.append(f"{page.relative_to(site)}: {link}")
    return missing


def broken_in_page(page: Path) -> list[str]:
    """Return every link of a Markdown file whose target is missing, after the name of the file."""
    targets = _TARGET.findall(page.read_text(encoding="utf-8"))
    return [f"{page.name}: {target}" for target in targets if not (page.parent / target).exists()]
