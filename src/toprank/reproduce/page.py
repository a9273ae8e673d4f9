"""Parts of a page, written as Markdown or as HTML."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #1b1b1b; background: #fff; }
table { border-collapse: collapse; font-size: .85rem; margin: 1rem 0; display: block;
        overflow-x: auto; }
th, td { border-bottom: 1px solid #ddd; padding: .25rem .6rem; text-align: right;
         font-variant-numeric: tabular-nums; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; background: #fff; } code { background: #f2f2f2; padding: 0 .2em; }
h2 { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1rem; }
"""


@dataclass(frozen=True)
class Paragraph:
    """Text, with **bold** and `code`."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of texts."""

    items: Sequence[str]


@dataclass(frozen=True)
class Grid:
    """A table: its header and its rows."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """A picture: its file, beside the page, and what it shows."""

    file: str
    alt: str


Part = Paragraph | Bullets | Grid | Picture


@dataclass(frozen=True)
class Section:
    """A heading and what is under it."""

    name: str
    title: str
    parts: Sequence[Part]


def to_markdown(title: str, opening: Sequence[Part], sections: Sequence[Section]) -> str:
    """Return the page as Markdown."""
    pieces = [f"# {title}", *map(_markdown, opening)]
    for section in sections:
        pieces += [f"## {section.title}", *map(_markdown, section.parts)]
    return "\n\n".join(pieces) + "\n"


def to_html(title: str, opening: Sequence[Part], sections: Sequence[Section], folder: Path) -> str:
    """Return the page as one HTML file, the pictures of a folder inside it."""
    inside = [f"<h1>{_inline(title)}</h1>", *(_html(part, folder) for part in opening)]
    for section in sections:
        inside.append(f'<h2 id="{section.name}">{_inline(section.title)}</h2>')
        inside += [_html(part, folder) for part in section.parts]
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    view = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    body = "\n".join(inside)
    open_body = f'<!doctype html>\n<html lang="en"><head>{head}{view}</head>\n<body>\n'
    return f"{open_body}{body}\n</body></html>\n"


def _markdown(part: Part) -> str:
    match part:
        case Paragraph(text):
            return text
        case Bullets(items):
            return "\n".join(f"- {item}" for item in items)
        case Grid(header, rows):
            lines = [header, ["---"] + ["--:"] * (len(header) - 1), *rows]
            return "\n".join("| " + " | ".join(line) + " |" for line in lines)
        case Picture(file, alt):
            return f"![{alt}]({file})"


def _html(part: Part, folder: Path) -> str:
    match part:
        case Paragraph(text):
            return f"<p>{_inline(text)}</p>"
        case Bullets(items):
            return "<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + "</ul>"
        case Grid(header, rows):
            top = "".join(f"<th>{_inline(cell)}</th>" for cell in header)
            lines = ("".join(f"<td>{_inline(cell)}</td>" for cell in row) for row in rows)
            body = "".join(f"<tr>{line}</tr>\n" for line in lines)
            return f"<table><thead><tr>{top}</tr></thead><tbody>\n{body}</tbody></table>"
        case Picture(file, alt):
            return f'<img alt="{html.escape(alt)}" src="{_embed(file, folder)}">'


def _embed(file: str, folder: Path) -> str:
    content = base64.b64encode((folder / file).read_bytes()).decode("ascii")
    return f"data:image/png;base64,{content}"


def _inline(text: str) -> str:
    """Escape a text and mark up its **bold** and `code`."""
    escaped = html.escape(text, quote=False)
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)
    return re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", escaped)
