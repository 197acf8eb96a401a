// One box, one line of the graph, as SVG.

import { svg } from "./dom";
import { cut, units } from "./labels";
import { type Frame, isGroup } from "./model";
import type { Box, Line } from "./scene";
import type { Session } from "./session";

/** A box; from afar, without the text that nobody could read. */
export function drawBox(session: Session, box: Box, far: boolean): SVGElement {
  const { graph, name } = session.stage;
  const { item, label } = box;
  const from = isGroup(item) ? undefined : sourceOf(session, item);
  const colour = session.lines.colour(from);
  const kind = isGroup(item) ? `group ${graph.c.groups[~item]!.kind}` : graph.inside(item).length ? "kernel" : box.pill ? "pill" : "node";
  const says = [label.title, isGroup(item) ? "" : graph.op(item), label.sub, from ? `line ${from.line}` : ""].filter(Boolean).join(", ");
  const g = svg("g", { class: `box ${kind}${colour >= 0 ? ` k${colour}` : ""}`, tabindex: "-1", role: "button", "aria-label": says });
  if (isGroup(item)) g.dataset["group"] = String(~item);
  else {
    g.dataset["node"] = String(item);
    const inside = graph.inside(item);
    if (inside.length) g.dataset["group"] = String(inside[0]);
  }
  if (box.open !== undefined) g.setAttribute("aria-expanded", String(box.open));
  const radius = box.pill ? 12 : isGroup(item) ? 9 : 6;
  g.append(svg("rect", { width: box.width, height: box.height, rx: radius }));
  place(g, box);
  if (far) return g;
  const mark = box.open === undefined ? "" : box.open ? " ▾" : " ▸";
  if (box.pill) g.append(text(label.title, box.width / 2, 16, "op"));
  else if (box.open) {
    g.append(text(label.title + mark, 12, 20, "title"));
    g.append(text(label.sub, 26 + (label.title.length + 2) * 7, 20, "sub"));
  } else {
    g.append(text(label.title + mark, 11, 18, "title"));
    if (label.sub) g.append(text(label.sub, 11, 34, "sub"));
  }
  const tip = svg("title");
  tip.textContent = isGroup(item) ? `${label.title}: ${units(name, graph.count(item))}` : `${graph.name(item)} = ${cut(graph.type(item), 200)} ${graph.op(item)}`;
  g.append(tip);
  return g;
}

/** Move a drawn box to where its box is. */
export function place(drawn: SVGElement, box: Box): void {
  drawn.setAttribute("transform", `translate(${box.x} ${box.y})`);
}

/** Where a node comes from; one that lost its own place has that of what it holds, or of what it belongs to. */
function sourceOf(session: Session, node: number): Frame | undefined {
  const { graph } = session.stage;
  const { lines } = session;
  const own = lines.place(graph, node);
  if (own) return own;
  for (const inner of graph.within(node)) {
    const place = lines.place(graph, inner);
    if (place) return place;
  }
  return lines.place(graph, graph.c.placed[node]!);
}

function text(content: string, x: number, y: number, kind: string): SVGTextElement {
  const made = svg("text", { x, y, class: kind });
  made.textContent = content;
  return made;
}

export function path({ points }: Line): string {
  let drawn = "";
  for (let i = 0; i < points.length; i += 2) drawn += `${i ? "L" : "M"}${points[i]!.toFixed(1)} ${points[i + 1]!.toFixed(1)}`;
  return drawn;
}

/** The arrow head at a line's end, as a triangle along its last piece. */
export function head({ points }: Line): string {
  const n = points.length;
  const [x, y] = [points[n - 2]!, points[n - 1]!];
  const [dx, dy] = [x - points[n - 4]!, y - points[n - 3]!];
  const length = Math.hypot(dx, dy) || 1;
  const [u, v] = [(dx / length) * 8, (dy / length) * 8];
  return `M${x.toFixed(1)} ${y.toFixed(1)}l${(-u - v / 2).toFixed(1)} ${(-v + u / 2).toFixed(1)}l${v.toFixed(1)} ${(-u).toFixed(1)}z`;
}

/** One line by itself, lit. */
export function drawLine(line: Line, arrow: string): SVGElement {
  return svg("path", { class: "edge lit", d: path(line), "marker-end": `url(#${arrow})` });
}

let arrows = 0;

/** An arrow head under a name of its own: one in a hidden part of the page would not draw for the others. */
export function arrowHead(): { id: string; defs: SVGElement } {
  const id = `explorer-arrow-${arrows++}`;
  const head = svg("path", { d: "M0 0L8 4L0 8z", class: "arrow" });
  return { id, defs: svg("defs", {}, svg("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, head)) };
}
