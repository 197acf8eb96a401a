// What is known about what is chosen; of the whole program while nothing is.

import { element } from "./dom";
import { STAGE_TITLES, amount, bytesOf, bytesText, count, cut, kernelsOf, labelOf, number, opText, shortType, units } from "./labels";
import { type Frame, type Graph, isGroup } from "./model";
import type { Session } from "./session";

const MOST = 40; // rows of a list before it says how many more there are

export class DetailsPane {
  readonly root: HTMLElement;

  constructor(private readonly session: Session, private readonly reveal: (node: number) => void) {
    this.root = element("div", { class: "explorer-details", "aria-live": "polite" });
  }

  fill(): void {
    const { focus } = this.session;
    this.root.scrollTop = 0;
    if (focus.item !== undefined) this.root.replaceChildren(...(isGroup(focus.item) ? this.group(~focus.item) : this.node(focus.item)));
    else if (focus.nodes.size) this.root.replaceChildren(...this.found([...focus.nodes]));
    else this.root.replaceChildren(...this.program());
  }

  private program(): Node[] {
    const { header } = this.session.capture;
    const rows: [string, string][] = [];
    if (header.cost["flops"] !== undefined) rows.push(["FLOPs", amount(header.cost["flops"])]);
    if (header.cost["bytes accessed"] !== undefined) rows.push(["bytes touched", bytesText(header.cost["bytes accessed"])]);
    for (const [use, bytes] of Object.entries(header.memory)) if (bytes) rows.push([`${use} memory`, bytesText(bytes)]);
    const { stage } = this.session;
    const parts: Node[] = [title(header.function), note(`${units(stage.name, stage.size)} in this stage. Click a line of the source, or a box, to see where it went.`), facts(rows)];
    if (header.failure) parts.splice(1, 0, element("p", { class: "failure" }, header.failure));
    parts.push(...this.operations(stage.graph.below(-1)));
    if (header.constants.length)
      parts.push(heading("baked in"), list(header.constants.map((c) => [c.name, `${c.type} · ${bytesText(c.bytes)}`])));
    parts.push(heading("compiled with"), list(Object.entries(header.environment)));
    return parts;
  }

  private group(group: number): Node[] {
    const { graph, name } = this.session.stage;
    const nodes = graph.below(group);
    const { title: label } = labelOf(graph, name, ~group);
    const runs = name === "hlo" ? ` in ${count(graph.kernelsIn(~group), "kernel")}` : "";
    return [title(label), note(`${units(name, nodes.length)}${runs}`), ...this.operations(nodes)];
  }

  private found(nodes: number[]): Node[] {
    const { focus, stage } = this.session;
    const what = focus.query ? `“${focus.query}”` : focus.line ? `line ${focus.line.line}` : "linked";
    const runs = stage.name === "hlo" ? kernelsOf(stage.graph, nodes) : [];
    const parts: Node[] = [title(what), note(units(stage.name, nodes.length) + (runs.length ? ` in ${count(runs.length, "kernel")}` : ""))];
    if (runs.length) parts.push(heading("kernels"), this.nodes(runs));
    const others = nodes.filter((node) => !runs.includes(node));
    if (others.length) parts.push(heading(runs.length ? "inside them" : "all"), this.nodes(others));
    return parts;
  }

  private node(node: number): Node[] {
    const { session } = this;
    const { graph, name } = session.stage;
    const inside = graph.within(node).slice(1);
    const place = session.lines.place(graph, graph.c.placed[node]!);
    const parts: Node[] = [title(graph.name(node), session.lines.colour(place))];
    parts.push(note(inside.length ? `1 ${opText(graph.op(node))} of ${units(name, inside.length)}` : opText(graph.op(node))));
    const bytes = bytesOf(graph.type(node));
    const read = [...new Set(graph.operands(node))].reduce((all, operand) => all + bytesOf(graph.type(operand)), 0);
    const rows: [string, string][] = [["type", shortType(graph.type(node))]];
    if (read) rows.push(["reads", bytesText(read)]);
    if (bytes) rows.push(["writes", bytesText(bytes)]);
    if (graph.scope(node)) rows.push(["scope", graph.scope(node)]);
    parts.push(facts(rows));
    const owner = graph.c.placed[node]!;
    const stack = owner >= 0 ? graph.stack(owner) : [];
    parts.push(heading("from"), stack.length ? this.stack(stack) : note("The compiler kept no place for it."));
    if (stack.length && owner !== node) parts.push(note(`The compiler kept no place for it: this is ${graph.name(owner)}'s, to which it belongs.`));
    for (const stage of session.capture.stages) {
      if (stage === session.stage) continue;
      const linked = [...new Set([node, ...inside].flatMap((at) => session.capture.linked(session.stage, at, stage)))];
      parts.push(heading(`in ${STAGE_TITLES[stage.name] ?? stage.name}`));
      if (!linked.length) parts.push(note(name === "hlo" ? "unmapped" : "unmapped: folded, eliminated, or its metadata was lost in a fusion"));
      else
        parts.push(
          list(
            linked.slice(0, MOST).map((at) => [opText(stage.graph.op(at)), stage.name === "hlo" ? fate(stage.graph, at) : shortType(stage.graph.type(at))]),
            linked.length - MOST,
            (row) => {
              session.setStage(stage.name);
              this.choose(linked[row]!);
            },
          ),
        );
    }
    if (inside.length) parts.push(heading("inside"), this.nodes(inside));
    const operands = [...new Set(graph.operands(node))];
    if (operands.length) parts.push(heading("operands"), this.nodes(operands));
    const users = graph.users(node);
    if (users.length) parts.push(heading("users"), this.nodes(users));
    return parts;
  }

  private choose(node: number): void {
    this.session.focusItem(node);
    this.reveal(node);
  }

  private stack(frames: Frame[]): Node {
    const made = element("div", { class: "list" });
    for (const frame of frames) {
      const button = element("button", { type: "button" }, `${frame.function.split(".").pop() || "?"}`, element("em", {}, `line ${frame.line}`));
      button.addEventListener("click", () => this.session.focusLine(frame.file, frame.line));
      made.append(button);
    }
    return made;
  }

  private nodes(nodes: number[]): Node {
    const { graph, name } = this.session.stage;
    const label = (node: number) => (name === "hlo" ? graph.name(node) : graph.op(node) === "parameter" ? graph.scope(node) || graph.name(node) : `${graph.name(node)} ${opText(graph.op(node))}`);
    return list(
      nodes.slice(0, MOST).map((node) => [cut(label(node), 36), shortType(graph.type(node))]),
      nodes.length - MOST,
      (row) => this.choose(nodes[row]!),
    );
  }

  /** The most frequent operations: clicking one finds them all. */
  private operations(nodes: Int32Array): Node[] {
    const { c } = this.session.stage.graph;
    const tally = new Int32Array(c.ops.length);
    for (const node of nodes) tally[c.op[node]!]!++;
    const counts = new Map(c.ops.map((op, code) => [op, tally[code]!] as const).filter(([, n]) => n));
    const ranked = [...counts].sort(([, a], [, b]) => b - a).slice(0, 12);
    return [
      heading("operations"),
      list(
        ranked.map(([op, n]) => [opText(op), number(n)]),
        counts.size - ranked.length,
        (row) => this.session.search(`op:${ranked[row]![0]}`),
      ),
    ];
  }
}

/** In HLO an operation runs as its own kernel or inside one. */
function fate(graph: Graph, node: number): string {
  const group = graph.c.groups[graph.c.groupOf[node]!];
  return group?.kind === "fusion" && group.caller >= 0 ? `fused into ${graph.name(group.caller)}` : "kept";
}

const title = (text: string, colour = -1): Node => element("div", { class: colour >= 0 ? `title k${colour}` : "title" }, text);
const heading = (text: string): Node => element("div", { class: "heading" }, text);
const note = (text: string): Node => element("div", { class: "note" }, text);

function facts(rows: [string, string][]): Node {
  const made = element("div", { class: "facts" });
  for (const [name, value] of rows) made.append(element("span", {}, name), element("span", { title: value }, value));
  return made;
}

function list(rows: [string, string][], more = 0, choose?: (row: number) => void): Node {
  const made = element("div", { class: "list" });
  rows.forEach(([name, value], row) => {
    const line = element(choose ? "button" : "div", choose ? { type: "button" } : {}, element("span", {}, name), element("em", { title: value }, value));
    if (choose) line.addEventListener("click", () => choose(row));
    made.append(line);
  });
  if (more > 0) made.append(note(`and ${number(more)} more`));
  return made;
}
