"""Small drawings of graphs as SVG: boxes for nodes, pills for values, colours by class from the enclosing page."""

import html
from typing import Final

from onnxjson.rendering.layered_layout import BETWEEN_BOXES, Box, Layout, Point, laid_out
from onnxjson.rendering.neighbourhoods import Picture, Shape
from onnxjson.rendering.tables import cells, cut

_NAMESPACE: Final = "http://www.w3.org/2000/svg"
_MARGIN: Final = 4.0
_TITLE_CHARACTER: Final = 8.0
"""Width of a character of a title at 12.5 px, as in the style; names are 10.5 px, monospaced."""

_NAME_CHARACTER: Final = 6.35
_LONGEST: Final = 26
"""Maximum number of drawn characters of a name; the title of the box has all of it."""

_NODE_HEIGHT: Final = 36.0
_PILL_HEIGHT: Final = 30.0
_LINE_HEIGHT: Final = 20.0
_WIDE: Final = 448.0
_WIDEST: Final = 1000.0
"""Widths above which a drawing scrolls sideways on a narrow screen instead of shrinking."""

STYLE: Final = """
.graph { font: 600 12.5px system-ui, sans-serif; }
.graph text { text-anchor: middle; fill: var(--ink); }
.graph .name { font: 10.5px ui-monospace, Menlo, Consolas, monospace; fill: var(--soft); }
.graph rect { fill: var(--paper); stroke: var(--line); stroke-width: 1.2; }
.graph path { fill: none; stroke: var(--line); stroke-width: 1.3; }
.graph polygon { fill: var(--line); }
.graph .value rect, .graph .constant rect { stroke-width: 1; fill: var(--shade); stroke: var(--faint); }
.graph .constant rect { stroke-dasharray: 3 2; }
.graph .context rect { stroke: var(--faint); }
.graph .context text { fill: var(--soft); }
.graph .removed rect { fill: var(--removed-shade); stroke: var(--removed); stroke-width: 2; }
.graph .added rect { fill: var(--added-shade); stroke: var(--added); stroke-width: 2; }
.graph .changed rect { fill: var(--changed-shade); stroke: var(--changed); stroke-width: 2; }
.graph path.removed { stroke: var(--removed); } .graph polygon.removed { fill: var(--removed); }
.graph path.added { stroke: var(--added); } .graph polygon.added { fill: var(--added); }
.graph path.changed { stroke: var(--changed); } .graph polygon.changed { fill: var(--changed); }
"""
"""Style sheet for all drawings of a page; the page defines the colours."""


def svg(picture: Picture, label: str) -> str:
    """Return a drawing as an ``svg`` element without ids, styles or scripts; `label` describes it, visible."""
    boxes = [_box(shape) for shape in picture.shapes]
    layout = laid_out(boxes, [(arrow.start, arrow.end) for arrow in picture.arrows])
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="{-_MARGIN:.0f} {-_MARGIN:.0f} {width:.1f} {height:.1f}"'
    kind = "graph widest" if width > _WIDEST else "graph wide" if width > _WIDE else "graph"
    parts = [f'<svg class="{kind}" xmlns="{_NAMESPACE}" role="img" aria-label="{html.escape(label)}" {size}>']
    parts += _lines(picture, layout)
    for shape, box, centre in zip(picture.shapes, boxes, layout.centres, strict=True):
        parts.append(_drawn(shape, box, centre))
    return "".join([*parts, "</svg>"])


def _is_value(shape: Shape) -> bool:
    return shape.status in ("value", "constant")


def _box(shape: Shape) -> Box:
    title, subtitle = _texts(shape)
    each = _NAME_CHARACTER if _is_value(shape) else _TITLE_CHARACTER
    width = max(cells(title) * each, cells(subtitle) * _NAME_CHARACTER) + BETWEEN_BOXES
    if not subtitle:
        return Box(width, _LINE_HEIGHT if _is_value(shape) else 26.0)
    return Box(width, _PILL_HEIGHT if _is_value(shape) else _NODE_HEIGHT)


def _texts(shape: Shape) -> tuple[str, str]:
    return cut(shape.title, _LONGEST), cut(shape.subtitle, _LONGEST)


def _drawn(shape: Shape, box: Box, centre: Point) -> str:
    title, subtitle = map(html.escape, _texts(shape))
    x, y = centre.x - box.width / 2, centre.y - box.height / 2
    radius = box.height / 2 if _is_value(shape) else 5
    full = " ".join(filter(None, (shape.title, shape.subtitle)))
    step = 6 if subtitle else 0
    upper = ' class="name"' if _is_value(shape) else ""
    lower = f'<text class="name" x="{centre.x:.1f}" y="{centre.y + 12:.1f}">{subtitle}</text>' if subtitle else ""
    return (
        f'<g class="{shape.status}"><title>{html.escape(full)}</title>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius:.0f}"/>'
        f'<text{upper} x="{centre.x:.1f}" y="{centre.y - step + 4:.1f}">{title}</text>{lower}</g>'
    )


def _lines(picture: Picture, layout: Layout) -> list[str]:
    drawn = []
    # Lines of the change are drawn above those of its context.
    order = sorted(range(len(picture.arrows)), key=lambda place: picture.arrows[place].status != "context")
    for place in order:
        points, status = layout.lines[place], picture.arrows[place].status
        end, before = points[-1], points[-2]
        way = 1 if end.y >= before.y else -1
        tip = Point(end.x, end.y - way)
        path = [f"M{points[0].x:.1f} {points[0].y:.1f}"]
        for one, other in zip(points, (*points[1:-1], Point(tip.x, tip.y - 5 * way)), strict=False):
            middle = (one.y + other.y) / 2
            path.append(f"C{one.x:.1f} {middle:.1f} {other.x:.1f} {middle:.1f} {other.x:.1f} {other.y:.1f}")
        head = (
            f"{tip.x:.1f},{tip.y:.1f} {tip.x - 3.5:.1f},{tip.y - 7 * way:.1f} {tip.x + 3.5:.1f},{tip.y - 7 * way:.1f}"
        )
        drawn.append(f'<path class="{status}" d="{"".join(path)}"/><polygon class="{status}" points="{head}"/>')
    return drawn
