"""Pages without outside resources: tables, paragraphs, figures and the document around them, everything escaped.

Knows: data -> HTML text. Does not know: what the pages are about (report.py, experiments/design_page.py).
"""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Iterable, Mapping, Sequence

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid rgba(128,128,128,.35); text-align: right; white-space: nowrap; }
th { border-bottom-width: 2px; } th.t, td.t { text-align: left; }
.none { opacity: .65; font-style: italic; } .bad { font-weight: bold; }
figure { margin: 1rem 0; background: #fff; border-radius: 6px; padding: .5rem; }
figure svg { width: 100%; height: auto; }
p, li { max-width: 50rem; } summary { cursor: pointer; margin: .6rem 0; }
"""


def document(title: str, sections: Iterable[tuple[str, str]]) -> str:
    """One HTML document: a heading for every section that has content, HTML text each."""
    body = "".join(f"<h2>{escape(name)}</h2>\n{content}\n" for name, content in sections if content)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n'
        f"<body><h1>{escape(title)}</h1>\n{body}</body></html>\n"
    )


@dataclasses.dataclass(frozen=True)
class Note:
    """A word in place of a number."""

    text: str


def table(header: Sequence[str], lines: Sequence[Sequence[object]], texts: int) -> str:
    """An HTML table; the first `texts` columns are left-aligned."""

    def row(tag: str, values: Sequence[object]) -> str:
        inside = (f"<{tag}{' class=t' if i < texts else ''}>{cell(v)}</{tag}>" for i, v in enumerate(values))
        return f"<tr>{''.join(inside)}</tr>"

    body = "\n".join(row("td", line) for line in lines)
    return f'<div class="wide"><table><thead>{row("th", header)}</thead>\n<tbody>{body}</tbody></table></div>\n'


def cell(value: object) -> str:
    """A value as a reader meets it: None as a dash, fractions with four digits, whole numbers with commas."""
    if value is None:
        return "–"
    if isinstance(value, Note):
        return f'<span class="none">{escape(value.text)}</span>'
    if isinstance(value, float):
        return f"{value:.4f}" if value == 0 or abs(value) >= 1e-3 else f"{value:.1e}"
    if isinstance(value, int):
        return f"{value:,}"
    return escape(value)


def folded(name: str, content: str) -> str:
    """HTML content behind a line to open it."""
    return f"<details><summary>{escape(name)}</summary>\n{content}</details>\n"


def interval(low: float | None, high: float | None) -> str | None:
    return None if low is None or high is None else f"{cell(low)} to {cell(high)}"


def figure(svg: str) -> str:
    """SVG text as a figure, put in as it is; "" for none."""
    return f"<figure>{svg[svg.index('<svg') :]}</figure>\n" if svg else ""


def mapping(values: Mapping[str, object]) -> str:
    return table(("name", "value"), [[k, str(v)] for k, v in values.items()], texts=2) if values else ""


def listing(sentences: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(s)}</li>" for s in sentences) + "</ul>"


def paragraph(sentences: str) -> str:
    return f"<p>{escape(sentences)}</p>\n"


def escape(value: object) -> str:
    return html.escape(str(value))
