"""A filter in a notebook: a small picture of its fill and its rate."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis._tamis import Filter

_WIDTH = 160
_BAR = (
    '<svg width="{width}" height="10" role="img" aria-label="{label}">'
    '<rect width="{width}" height="10" rx="3" fill="#8884"/>'
    '<rect width="{part:.1f}" height="10" rx="3" fill="{colour}"/></svg>'
)


def _bar(part: float, label: str, *, warn: bool) -> str:
    part = _WIDTH * min(max(part, 0.0), 1.0)
    colour = "#c33" if warn else "#38a"
    return _BAR.format(width=_WIDTH, part=part, colour=colour, label=html.escape(label))


def _size(nbytes: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if nbytes < 1000 or unit == "GB":
            break
        nbytes /= 1000
    return f"{nbytes:.0f} {unit}" if unit == "bytes" else f"{nbytes:.1f} {unit}"


def render(filter: Filter) -> str:  # noqa: A002
    """Draw the filter as a small table of HTML."""
    fill, rate, asked = filter.fill, filter.fpr, filter.requested_fpr
    rows = [("keys", f"{len(filter):,}", "")]
    if fill is not None:
        label = f"{fill:.0%} of {filter.capacity:,}"
        rows.append(("fill", label, _bar(fill, label, warn=fill > 1)))
    label = f"{rate:.3g}, of {asked:.3g} asked for"
    rows.append(("false positives", label, _bar(rate / asked, label, warn=rate > 1.1 * asked)))
    rows.append(("memory", _size(filter.nbytes), ""))
    name = html.escape(f"{type(filter).__name__} {filter.kind}")
    body = "".join(
        f"<tr><th>{a}</th><td>{html.escape(b)}</td><td>{c}</td></tr>" for a, b, c in rows
    )
    return f"<table><thead><tr><th colspan=3>{name}</th></tr></thead><tbody>{body}</tbody></table>"
