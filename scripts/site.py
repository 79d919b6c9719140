#!/usr/bin/env python3
"""Builds the documents as a site, target/docs, with mdBook, and checks its links.

    scripts/site.py MDBOOK    builds and checks the site
    scripts/site.py           only checks the pages, without mdBook: what CI does

docs/SUMMARY.md is the table of contents. The pages, and the files that they link to, are copied into target/docs-source
with the folders of the repository, so that a link is the same there and here. A page of docs/ that the table lacks, a
link to a page or file that the site lacks, and a link to a heading that does not exist are errors.
"""

import html.parser
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "target/docs-source"
SITE = ROOT / "target/docs"
LINK = re.compile(r"\]\(([^)\s]+)\)")


def inside(page, link):
    """The path in the repository that a page's link has."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


def prose(text):
    """A page without its fenced blocks, which may contain what looks like a link."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def anchors(text):
    """The identifiers in a page: of its headings, as mdBook and GitHub make them, and of `<a id=…>`."""
    text = prose(text)
    titles = re.findall(r"^#{1,6} +(.*?) *$", text, flags=re.M)
    titles = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).lower().replace(" ", "-") for title in titles]
    return set(re.findall(r'<a id="([^"]*)"', text)) | {re.sub(r"[^\w-]", "", title) for title in titles}


def copy():
    """Copies pages and linked files. Returns the mistakes."""
    mistakes = []
    shutil.rmtree(SOURCE, ignore_errors=True)
    (SOURCE / "docs").mkdir(parents=True)
    summary = (ROOT / "docs/SUMMARY.md").read_text()
    pages = [inside("docs/SUMMARY.md", link) for link in LINK.findall(summary)]
    (SOURCE / "SUMMARY.md").write_text(LINK.sub(lambda it: f"]({inside('docs/SUMMARY.md', it[1])})", summary))
    headings = {page: anchors((ROOT / page).read_text()) for page in pages}
    files = {"docs/site.css"}
    for page in pages:
        text = (ROOT / page).read_text()
        for link in LINK.findall(prose(text)):
            if "://" in link:
                continue
            path, _, anchor = link.partition("#")
            target = inside(page, path) if path else page
            if target in headings:
                if anchor and anchor not in headings[target]:
                    mistakes.append(f"{page}: {link}: no such heading")
            elif target.endswith(".md"):
                mistakes.append(f"{page}: {target} is not in docs/SUMMARY.md")
            elif not (ROOT / target).is_file():
                mistakes.append(f"{page}: {target} is no file")
            else:
                files.add(target)
    written = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")}
    mistakes += [f"{page} is not in docs/SUMMARY.md" for page in sorted(written - set(pages) - {"docs/SUMMARY.md"})]
    for path in [*pages, *files]:
        (SOURCE / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, SOURCE / path)
    # mdBook ignores what git ignores, and looks for that above the source too.
    shutil.copy(ROOT / "docs/book.toml", SOURCE / "book.toml")
    return mistakes


class Page(html.parser.HTMLParser):
    """The identifiers and links of a built page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids |= {attributes[key] for key in ("id", "name") if attributes.get(key)}
        self.links += [attributes[key] for key in ("href", "src") if attributes.get(key)]


def dead_links():
    """The links of the built site that lead nowhere."""
    pages = {path: Page(path.read_text()) for path in SITE.rglob("*.html")}
    dead = []
    for path, page in pages.items():
        for link in page.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc or link == "#" or path.name == "404.html":
                continue
            target = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path
            anchor = urllib.parse.unquote(url.fragment)
            if not target.is_file():
                dead.append(f"{path.relative_to(SITE)}: {link}")
            elif anchor and target in pages and anchor not in pages[target].ids:
                dead.append(f"{path.relative_to(SITE)}: {link}: no such heading")
    return sorted(set(dead))


def main():
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    mistakes = copy()
    if not mistakes and len(sys.argv) == 2:
        shutil.rmtree(SITE, ignore_errors=True)
        if subprocess.run([sys.argv[1], "build", "--dest-dir", SITE, SOURCE], check=False).returncode:
            sys.exit("site: mdBook failed")
        mistakes = dead_links()
    if mistakes:
        sys.exit("site: these links lead nowhere:\n  " + "\n  ".join(mistakes))
    if len(sys.argv) == 2:
        print(f"site: {SITE / 'index.html'}")


if __name__ == "__main__":
    main()
