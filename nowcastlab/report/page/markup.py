"""HTML from Python values. Whatever is not marked as HTML is escaped: names and notes come from runs, and anybody may
have written those.

    tag("td", "a < b", class_="best")     # <td class="best">a &lt; b</td>
"""

from __future__ import annotations

import html

EMPTY = {"img", "meta", "col", "br"}


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, /, *children: str | None, **attributes: str | int | bool | None) -> Html:
    """An element. Of attributes None and False are left out; `class_` is class, `aria_label` is aria-label."""
    written = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        written.append(f" {attribute}" if value is True else f' {attribute}="{html.escape(str(value))}"')
    start = f"<{name}{''.join(written)}>"
    return Html(start if name in EMPTY else f"{start}{join(*children)}</{name}>")


def join(*children: str | None) -> Html:
    return Html("".join(child if isinstance(child, Html) else html.escape(child) for child in children if child))
