// One box, one line of the graph, as SVG.

import type { Stage } from "../core/capture";
import { svg, svgText } from "../core/dom";
import { type Graph, type Item, isGroup, isNode, isRest } from "../core/graph";
import { bytesOf, bytesText, count, cut, shareOf, shortType, units } from "../core/labels";
import type { SourceLine } from "../core/links";
import type { Session } from "../core/session";
import type { Colour } from "./colours";
import { type Box, CHIP_HEIGHT, type Line } from "./scene";

// In every stage's spelling; beginnings are enough: `psum_scatter`, `all-reduce-start`.
const COLLECTIVE = new RegExp(
  "^(stablehlo\\.)?((ragged-)?all-(reduce|gather|to-all)|reduce-scatter|collective-(permute|broadcast)|" +
    "send|recv|psum|pmax|pmin|ppermute)",
);

export const isCollective = (graph: Graph, item: Item): boolean =>
  isNode(item) && COLLECTIVE.test(graph.op(item.node).replaceAll("_", "-"));

/** A box; from afar, without the text that nobody could read. */
export function drawBox(session: Session, box: Box, colour: Colour, far: boolean): SVGElement {
  const { graph } = session.stage;
  const { item } = box;
  const about = { class: `box ${kindOf(session, box)}`, tabindex: "-1", "aria-label": ariaLabel(session, box) };
  const g = svg("g", { ...about, role: "button" });
  paintBox(g, colour);
  const inside = graph.inside(item);
  if (isRest(item)) g.dataset.rest = `${item.group} ${item.isBefore ? "before" : "after"}`;
  else if (isGroup(item)) g.dataset.group = String(item.group);
  else {
    g.dataset.node = String(item.node);
    if (inside.length) g.dataset.group = String(inside[0]);
  }
  if (box.open !== undefined) g.setAttribute("aria-expanded", String(box.open));
  g.append(...outline(session, box));
  place(g, box);
  if (far) return g;
  g.append(...words(box));
  const note = session.noteOn(item);
  if (note !== undefined) g.append(svgText("✎", box.width - 16, -2, "note-mark"));
  const share = box.open || box.pill || isGroup(item) || isCollective(graph, item) ? undefined : shareOf(graph, item);
  if (share && share.share > 0.004) {
    const width = Math.max(share.share * (box.width - 2), 2);
    g.append(svg("rect.share", { x: 1, y: box.height - 4, width, height: 3, rx: 1.5 }));
  }
  g.append(...chipsOf(box));
  if (box.step) g.append(...steps(box, box.step));
  g.append(svg("title", tipOf(session, box)));
  return g;
}

export function paintBox(drawn: SVGElement, { kind, css }: Colour): void {
  for (const name of [...drawn.classList]) if (/^k\d$/.test(name)) drawn.classList.remove(name);
  if (kind >= 0) drawn.classList.add(`k${kind}`);
  drawn.classList.toggle("measured", css !== undefined);
  if (css === undefined) drawn.style.removeProperty("--c");
  else drawn.style.setProperty("--c", css);
}

function kindOf({ stage: { graph } }: Session, box: Box): string {
  const { item } = box;
  if (isRest(item)) return "rest";
  if (box.chain) return "node chain";
  if (isGroup(item)) return `group ${graph.c.groups[item.group]!.kind}`;
  const kind = graph.inside(item).length ? "kernel" : box.pill ? "pill" : "node";
  return isCollective(graph, item) ? `${kind} collective` : kind;
}

function ariaLabel(session: Session, { item, label, chain }: Box): string {
  const { graph } = session.stage;
  const node = isNode(item) && !chain ? item.node : undefined;
  const from = node === undefined ? undefined : sourceOf(session, node);
  const name = node === undefined ? [] : [graph.name(node), graph.op(node)];
  const parts = [label.title, ...name.filter((part) => part !== label.title), label.sub, from && `line ${from.line}`];
  return parts.filter(Boolean).join(", ");
}

function tipOf(session: Session, { item, label, chain }: Box): string {
  const { graph, name } = session.stage;
  const note = session.noteOn(item);
  if (note !== undefined) return `${label.title}\n✎ ${note}`;
  if (isRest(item)) return label.title;
  if (chain) return chain.map((node) => graph.name(node)).join(" ▸ ");
  if (isGroup(item)) return `${label.title}: ${units(name, graph.count(item))}`;
  return `${graph.name(item.node)} = ${cut(graph.type(item.node), 200)} ${graph.op(item.node)}`;
}

/** The shape: a pack for what repeats, cut corners for what talks to other devices. */
function outline({ stage: { graph } }: Session, box: Box): SVGElement[] {
  const { item, width, height, open } = box;
  const radius = box.pill ? 12 : isGroup(item) ? 9 : 6;
  const isPack = box.chain || (isGroup(item) && graph.times(item) > 1);
  const back = isPack && !open ? [8, 4].map((by) => svg("rect.back", { x: by, y: by, width, height, rx: radius })) : [];
  if (!isCollective(graph, item)) return [...back, svg("rect.shape", { width, height, rx: radius })];
  const c = Math.min(12, height / 2);
  const d = `M${c} 0H${width - c}L${width} ${height / 2}L${width - c} ${height}H${c}L0 ${height / 2}z`;
  return [svg("path.shape", { d })];
}

function words({ item, label, open, pill, width }: Box): SVGElement[] {
  const mark = open === undefined ? "" : open ? " ▾" : " ▸";
  if (pill) return [svgText(label.title, width / 2, 16, "op")];
  if (isRest(item)) return [svgText(label.title, 11, 18, "title"), svgText(label.sub, 11, 34, "sub")];
  if (open) {
    // In one text, so that they can't lie over each other however wide the letters are.
    const header = svgText(`${label.title}${mark} `, 12, 20, "title");
    header.append(svg("tspan.sub", { dx: 8 }, [label.sub, label.held].filter(Boolean).join(" · ")));
    return [header];
  }
  const lines = [label.sub, label.held ?? ""].flatMap((line, i) =>
    line ? [svgText(line, 11, 34 + 16 * i, "sub")] : [],
  );
  return [svgText(label.title + mark, 11, 18, "title"), ...lines];
}

function chipsOf({ chips, height }: Box): SVGElement[] {
  let x = 8;
  return chips.map(({ node, text: name, width }) => {
    const g = svg("g.chip", { transform: `translate(${x} ${height - CHIP_HEIGHT - 6})` });
    if (node >= 0) g.dataset.chip = String(node);
    g.append(svg("rect", { width, height: CHIP_HEIGHT, rx: CHIP_HEIGHT / 2 }), svgText(name, width / 2, 12, "op"));
    x += width + 4;
    return g;
  });
}

/** ‹ 3 of 24 › at the right of an open repeat's header. */
function steps({ width }: Box, { at, of }: { at: number; of: number }): SVGElement[] {
  const button = (sign: string, by: number, x: number, label: string) => {
    const g = svg("g.step", { role: "button", "aria-label": label, transform: `translate(${x} 6)` });
    g.dataset.step = String(by);
    g.append(svg("rect", { width: 20, height: 20, rx: 5 }), svgText(sign, 10, 15, "op"));
    return g;
  };
  return [
    button("‹", -1, width - 116, "previous iteration ([)"),
    svgText(`${at + 1} of ${of}`, width - 60, 20, "sub step-at"),
    button("›", 1, width - 28, "next iteration (])"),
  ];
}

export function place(drawn: SVGElement, box: Box): void {
  drawn.setAttribute("transform", `translate(${box.x} ${box.y})`);
}

export const sourceOf = ({ stage, lines }: Session, node: number): SourceLine | undefined =>
  lines.place(stage.graph, node);

export function path({ points }: Pick<Line, "points">): string {
  let drawn = "";
  for (let i = 0; i < points.length; i += 2)
    drawn += `${i ? "L" : "M"}${points[i]!.toFixed(1)} ${points[i + 1]!.toFixed(1)}`;
  return drawn;
}

/** The arrow head at a line's end, as a triangle along its last piece. */
export function head({ points }: Pick<Line, "points">): string {
  const n = points.length;
  const [x, y] = [points[n - 2]!, points[n - 1]!];
  const [dx, dy] = [x - points[n - 4]!, y - points[n - 3]!];
  const length = Math.hypot(dx, dy) || 1;
  const [u, v] = [(dx / length) * 8, (dy / length) * 8];
  const [mx, my, lx, ly, rx, ry] = [x, y, -u - v / 2, -v + u / 2, v, -u].map((value) => value.toFixed(1));
  return `M${mx} ${my}l${lx} ${ly}l${rx} ${ry}z`;
}

/** One line by itself, lit, with what flows along it. */
export function drawLine(line: Line, arrow: string, ariaLabel: string): SVGElement {
  const drawn = svg("path.edge.lit", { d: path(line), "marker-end": `url(#${arrow})` });
  if (!ariaLabel) return drawn;
  const { x, y, level, length } = middle(line);
  // Where it is wider than its line it goes above the boxes on both sides.
  const up = length < ariaLabel.length * 6 ? 27 : 5;
  const label = svgText(ariaLabel, level ? x : x + 6, level ? y - up : y + 4, "flow");
  if (level) label.setAttribute("text-anchor", "middle");
  return svg("g", drawn, label);
}

/** The middle of the longest piece, whether it is level, and how long. */
function middle({ points }: Line): { x: number; y: number; level: boolean; length: number } {
  const pieces = Array.from({ length: points.length / 2 - 1 }, (_, i) => {
    const [x, y, nextX, nextY] = [...points.subarray(2 * i, 2 * i + 4)] as [number, number, number, number];
    const [across, down] = [Math.abs(nextX - x), Math.abs(nextY - y)];
    return { x: (x + nextX) / 2, y: (y + nextY) / 2, level: across > down, length: across, size: across * 1.5 + down };
  });
  return pieces.reduce((best, piece) => (piece.size > best.size ? piece : best));
}

let arrows = 0;

/** An arrow head under a name of its own: one in a hidden part of the page would not draw for the others. */
export function arrowHead(): { id: string; defs: SVGElement } {
  const id = `explorer-arrow-${arrows++}`;
  const size = { viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" };
  const head = svg("path.arrow", { d: "M0 0L8 4L0 8z" });
  return { id, defs: svg("defs", svg("marker", { id, ...size }, head)) };
}

const MOST = 20_000; // nodes that are searched for one line

/**
 * `f32[8,128] · 4.1 kB`, or how many arrays of how many bytes in all; empty where that would take long. Of several
 * devices with the axes that split it, `f32[64@data,128] · 4.1 kB each`.
 */
export function flowText({ graph, shardings }: Pick<Stage, "graph" | "shardings">, from: Item, to: Item): string {
  if (isRest(from) || isRest(to)) return "";
  const [start, end] = graph.range(from);
  const [first, last] = graph.range(to);
  if (last - first > MOST) return "";
  const operands = new Set<number>();
  for (let i = first; i < last; i++)
    for (const operand of graph.operands(graph.order[i]!)) {
      const at = graph.at[operand]!;
      if (at >= start && at < end) operands.add(operand);
    }
  if (!operands.size) return "";
  const bytes = [...operands].reduce((all, node) => all + bytesOf(graph.type(node)), 0);
  const only = operands.size === 1 ? [...operands][0]! : undefined;
  if (only !== undefined && shardings) return `${shardings.text(only)} · ${bytesText(bytes)} each`;
  const what = only !== undefined ? typeText(graph, only) : count(operands.size, "array");
  return `${what} · ${bytesText(bytes)}`;
}

/** `f32[b≤64,s≤32,8]`: of an array that is padded, with the dimensions that vary. */
function typeText(graph: Graph, node: number): string {
  const type = shortType(graph.type(node));
  const padded = graph.attributes?.get(node, "padded");
  if (!padded) return type;
  const sizes = type.slice(type.indexOf("[") + 1, -1).split(",");
  for (const part of padded.split(/,(?=\d+=)/)) {
    const at = part.indexOf("=");
    const axis = Number(part.slice(0, at));
    sizes[axis] = `${part.slice(at + 1)}≤${sizes[axis]}`;
  }
  return `${type.slice(0, type.indexOf("["))}[${sizes.join(",")}]`;
}
