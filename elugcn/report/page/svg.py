"""Inline SVG as a tree, so that text from strangers is escaped by the serialiser.

Colours come from CSS classes: the page's policy forbids style attributes, and the same
drawing then serves light, dark and paper.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup

Value = str | float | int


def drawing(width: float, height: float, title: str, kind: str = "chart") -> Element:
    """An empty drawing that fills the width it is given; ``title`` is read aloud."""
    return Element(
        "svg",
        {
            "viewBox": f"0 0 {number(width)} {number(height)}",
            "role": "img",
            "aria-label": title,
            "class": kind,
        },
    )


def add(parent: Element, tag: str, text: str | None = None, **given: Value) -> Element:
    """A child element; ``text_anchor`` becomes ``text-anchor``, ``class_`` class."""
    child = SubElement(
        parent,
        tag,
        {
            name.rstrip("_").replace("_", "-"): (
                value if isinstance(value, str) else number(value)
            )
            for name, value in given.items()
        },
    )
    child.text = text
    return child


def markup(root: Element) -> Markup:
    """The drawing as text that a template may insert as it is."""
    return Markup(tostring(root, encoding="unicode"))


def number(value: float) -> str:
    """Two decimals at most: the browser draws no finer."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"
