// The details of what is chosen; of the whole program while nothing is.

import type { LineCost, Stage } from "../core/capture";
import { button, copied, element } from "../core/dom";
import { type Graph, groupItem, type Item, isGroup, isNode, nodeItem } from "../core/graph";
import {
  bytesOf,
  bytesText,
  computes,
  count,
  cut,
  isOneIteration,
  judgedOf,
  kernelsOf,
  labelOf,
  number,
  opText,
  STAGE_TITLES,
  shortType,
  total,
  units,
} from "../core/labels";
import { lineKey, type SourceLine } from "../core/links";
import type { FocusLine, Session } from "../core/session";
import { amountOf, Costs, IN_GRAPH, type Measure, ONE_ITERATION, percent } from "../lines/line_costs";
import { extracted, type Live } from "../viewer/kernel";
import { attributes, facts, heading, list, MOST, note, say, sentence, stackOf, title } from "./parts";

const NAMES: Record<Measure, string> = { seconds: "time, measured", bytes: "bytes moved", flops: "FLOPs" };

const HOW = "Click a line of the source, or a box, to see where it went.";

/** What kernels are expected to take together, and by whom. */
function estimated(of: [node: number, seconds: number, by: string][]): [string, string] {
  const seconds = of.reduce((all, [, each]) => all + each, 0);
  const by = [...new Set(of.map(([, , name]) => name))].join(" and ");
  return ["time, estimated", `${amountOf.seconds(seconds)}, by ${by}`];
}

/** An amount, and its share of the whole. */
function shared(measure: Measure, value: number, share: number): [string, string] {
  const text = percent(share);
  return [NAMES[measure], amountOf[measure](value) + (text ? ` · ${text}` : "")];
}

/** What the graph shows of the ways from a node. */
export type Ways = { pathsFrom(item: Item): void; widen(by: number): void };

export class DetailsPane {
  readonly root = element("div.explorer-details", { "aria-live": "polite" });
  readonly #costsOf: Costs;

  constructor(
    private readonly session: Session,
    private readonly reveal: (node: number) => void,
    private readonly ways: Ways,
    private readonly link: Live,
  ) {
    this.#costsOf = new Costs(session.capture.header.lines);
  }

  fill(): void {
    const { focus } = this.session;
    this.root.scrollTop = 0;
    if (isGroup(focus.item)) this.root.replaceChildren(...this.#group(focus.item.group));
    else if (isNode(focus.item)) this.root.replaceChildren(...this.#node(focus.item.node));
    else if (focus.line && !focus.nodes.size) this.root.replaceChildren(...this.#emptyLine(focus.line));
    else if (focus.nodes.size) this.root.replaceChildren(...this.#selection([...focus.nodes]));
    else this.root.replaceChildren(...this.#program());
  }

  #program(): Node[] {
    const { header } = this.session.capture;
    const rows: [string, string][] = [];
    for (const measure of this.#costsOf.measures)
      rows.push([NAMES[measure], amountOf[measure](this.#costsOf.total(measure))]);
    const devices = this.#devices;
    const each = devices > 1 ? ` on each of ${number(devices)} devices` : "";
    for (const [use, bytes] of Object.entries(header.memory))
      if (bytes) rows.push([`${use} memory`, bytesText(bytes) + each]);
    const estimates = header.estimates ?? [];
    if (estimates.length) rows.push(estimated(estimates));
    const { stage } = this.session;
    const parts: Node[] = [
      title(header.function),
      note(`${units(stage.name, stage.size)} in this stage. ${HOW}`),
      facts(rows),
    ];
    parts.push(...(header.limits ?? []).map(note));
    if (header.failure) parts.splice(1, 0, element("p.failure", header.failure));
    parts.push(...this.#fates(), ...this.#operations(stage.graph.below(-1)));
    if (header.constants.length)
      parts.push(heading("baked in"), list(header.constants.map((c) => [c.name, `${c.type} · ${bytesText(c.bytes)}`])));
    parts.push(heading("compiled with"), list(Object.entries(header.environment)));
    return parts;
  }

  get #devices(): number {
    const mesh = this.session.capture.stages.at(-1)?.shardings?.mesh ?? [];
    return mesh.reduce((all, [, size]) => all * size, 1);
  }

  #group(group: number): Node[] {
    const { graph, name } = this.session.stage;
    const nodes = graph.below(group);
    const { title: label } = labelOf(graph, name, groupItem(group));
    const runs = name === "hlo" ? ` in ${count(graph.kernelsIn(groupItem(group)), "kernel")}` : "";
    const differs = graph.c.difference?.[group];
    return [
      title(label),
      note(`${units(name, nodes.length)}${runs}`),
      ...(differs ? [note(`Not all are alike: ${differs}.`)] : []),
      ...(isOneIteration(graph, groupItem(group)) ? [note(`Inside a loop, ${ONE_ITERATION}.`)] : []),
      ...this.#operations(nodes),
    ];
  }

  #selection(nodes: number[]): Node[] {
    const { focus, stage } = this.session;
    const what = focus.query ? `“${focus.query}”` : focus.line ? `line ${focus.line.line}` : (focus.name ?? "linked");
    const runs = stage.name === "hlo" ? kernelsOf(stage.graph, nodes) : [];
    const run = runs.length ? ` in ${count(runs.length, "kernel")}` : "";
    const parts: Node[] = [title(what), note(units(stage.name, nodes.length) + run)];
    if (focus.line?.through) parts.push(note("All that the calls on this line compiled to."));
    if (focus.line) parts.push(...this.#called(focus.line));
    const line = focus.line && !focus.line.through && this.#costsOf.at(lineKey(focus.line.file, focus.line.line));
    const cost = (measure: Measure, of: LineCost) =>
      shared(measure, of[measure] ?? 0, this.#costsOf.share(of, measure));
    if (line) parts.push(facts(this.#costsOf.measures.map((measure) => cost(measure, line))));
    if (runs.length) parts.push(heading("kernels"), this.#nodes(runs));
    const others = nodes.filter((node) => !runs.includes(node));
    if (others.length) parts.push(heading(runs.length ? "inside them" : "all"), this.#nodes(others));
    return parts;
  }

  /** A line that nothing of this stage belongs to, and what it calls. */
  #emptyLine(line: FocusLine): Node[] {
    const nothing = note("No node of this stage comes from this line itself.");
    return [title(`line ${line.line}`), nothing, ...this.#called(line)];
  }

  #called(line: FocusLine): Node[] {
    const { length } = this.session.calledFrom(line);
    if (!length) return [];
    const rows: [string, string][] = [["with what it calls", units(this.session.stage.name, length)]];
    return [list(rows, 0, () => this.session.focusLine(line.file, line.line, true))];
  }

  #node(node: number): Node[] {
    const { session } = this;
    const { graph, name } = session.stage;
    const inside = graph.within(node).slice(1);
    const place = session.lines.place(graph, node);
    const op = opText(graph.op(node));
    const parts: Node[] = [
      title(graph.name(node), session.lines.colour(place)),
      note(inside.length ? `1 ${op} of ${units(name, inside.length)}` : op),
      this.#acts(node),
    ];
    const rows: [string, string][] = [["type", shortType(graph.type(node))], ...this.#costs(node)];
    if (graph.scope(node)) rows.push(["scope", graph.scope(node)]);
    const { shardings } = session.stage;
    const way = shardings?.way(node);
    if (shardings && way) rows.push(["sharding", `${shardings.text(node)}: ${way}`]);
    parts.push(facts(rows), ...attributes(graph.attributes?.of(node) ?? []));
    parts.push(...this.#fate(node), ...this.#madeOf(node), ...this.#origin(node, place));
    for (const stage of session.capture.stages) {
      // The kernels of a fate need no second list.
      const isMade = name === "hlo" && stage.name === "jaxpr" && graph.isKernel(node);
      if (stage === session.stage || (stage.name === "hlo" ? session.stage.fates : isMade)) continue;
      const linked = [...new Set([node, ...inside].flatMap((at) => session.capture.linked(session.stage, at, stage)))];
      parts.push(heading(`in ${STAGE_TITLES[stage.name] ?? stage.name}`, ...this.#grade(node, stage, linked.length)));
      const lost = name === "hlo" ? "" : ": folded, eliminated, or its metadata was lost in a fusion";
      const about = (at: number) => (stage.name === "hlo" ? fate(stage.graph, at) : shortType(stage.graph.type(at)));
      const rows = linked.slice(0, MOST).map((at): [string, string] => [opText(stage.graph.op(at)), about(at)]);
      const choose = (row: number) => this.#choose(linked[row]!, stage.name);
      parts.push(rows.length ? list(rows, linked.length - MOST, choose) : note(`unmapped${lost}`));
    }
    if (inside.length) parts.push(heading("inside"), this.#nodes(inside));
    const operands = [...new Set(graph.operands(node))];
    if (operands.length) parts.push(heading("operands"), this.#nodes(operands));
    const users = graph.users(node);
    if (users.length) parts.push(heading("users"), this.#nodes(users));
    return parts;
  }

  /** What can be done with a node: show ways from it, copy what extracts it. */
  #acts(node: number): Node {
    const { graph, name } = this.session.stage;
    const act = (text: string, title: string, run: (from: HTMLElement) => void) => {
      const made: HTMLElement = button({ title }, () => run(made), text);
      return made;
    };
    const acts = [
      act("paths to …", "all paths to the node that you select next (p)", () => this.ways.pathsFrom(nodeItem(node))),
      act("near", "neighbors one step away (n); again for two steps", () => this.ways.widen(1)),
      act("− near", "one step less (N)", () => this.ways.widen(-1)),
    ];
    if (name === "hlo" || name === "before") {
      const call = `cap.extract(cap.stage("${name}").graph[${JSON.stringify(graph.name(node))}], height=2)`;
      const isLive = this.link.model !== undefined;
      const help = isLive
        ? "copies an HLO module that computes this node and up to two steps before it; XLA can run it"
        : `copies ${call}: the text of a module that XLA runs`;
      const copy = async (from: HTMLElement) => {
        const module = await extracted(this.link, name, node, 2);
        say(from, await copied(module ?? call), module ?? call, module ? "copied" : "copied the call");
      };
      acts.push(act(isLive ? "copy as HLO module" : "copy cap.extract(…)", help, (from) => void copy(from)));
    }
    return element("div.acts", ...acts);
  }

  /** Of several equations, if a node comes from all or one of them; where that isn't exact, a mark. */
  #grade(node: number, stage: Stage, linked: number): Node[] {
    const { session } = this;
    const { sets } = session.stage;
    if (!sets || stage !== session.capture.stages[0] || !sets.of(node).length) return [];
    const count = sets.of(node).length;
    if (sets.gradeOf(node) === "exact")
      return count > 1 && count === linked ? [element("i.inferred", `made of all ${count}`)] : [];
    const title = "Inferred from its name and source location, or from the pass that created it.";
    return [element("i.inferred", { title }, count > 1 ? `≈ one of ${count}` : "≈ inferred")];
  }

  /** What a node costs, as far as that was counted; before HLO the sizes of its types. */
  #costs(node: number): [string, string][] {
    const { session } = this;
    const { graph } = session.stage;
    const { flops, bytes, runs } = graph.c.measures;
    const rows: [string, string][] = [];
    const read = [...new Set(graph.operands(node))].reduce((all, operand) => all + bytesOf(graph.type(operand)), 0);
    const written = bytesOf(graph.type(node));
    if (!flops || !bytes) {
      if (read) rows.push(["reads", bytesText(read)]);
      if (written) rows.push(["writes", bytesText(written)]);
      return rows;
    }
    for (const [measure, name] of Object.entries(IN_GRAPH) as [Measure, string][]) {
      const value = graph.c.measures[name]?.[node] ?? 0;
      if (value > 0) rows.push(shared(measure, value, value / total(graph, name)));
    }
    const estimate = session.capture.header.estimates?.find(([of]) => of === node);
    if (estimate && session.stage.name === "hlo") rows.push(estimated([estimate]));
    const { bound, wasted } = judgedOf(graph, nodeItem(node));
    if (bound) rows.push(["limited by", `${bound} · ${percent(wasted) || "0%"} of its time wasted`]);
    if (Number.isNaN(flops[node]!)) rows.push(["FLOPs", "known only to the backend"]);
    const intensity = flops[node]! / bytes[node]!;
    if (intensity > 0 && intensity < Infinity)
      rows.push(["FLOPs a byte", intensity < 10 ? intensity.toPrecision(2) : intensity.toFixed(0)]);
    const times = runs?.[node] ?? 1;
    if (graph.isOneIteration(node)) rows.push(["runs", "unknown: one iteration counted"]);
    else if (Number.isNaN(times)) rows.push(["runs", "unknown: counted once"]);
    else if (times !== 1 && graph.isKernel(node)) rows.push(["runs", `× ${number(times)}`]);
    return rows;
  }

  #fate(node: number): Node[] {
    const { session } = this;
    const { fates } = session.stage;
    const kind = fates?.kind(node);
    if (!fates || !kind) return [];
    const kernels = fates.kernels(node);
    const to = session.capture.stage("hlo");
    const step = fates.stepText(fates.step(node));
    const what = step ? `${kind} by ${step}` : kind;
    const parts = [heading("what happened to it"), sentence(what, fates.isInferred(node), fates.why(node))];
    const ask = () => session.setMode("why");
    if (fates.before(node)) parts.push(button({ class: "place" }, ask, "why? the lines before and after"));
    if (!kernels.length) return parts;
    const rows = kernels
      .slice(0, MOST)
      .map((at): [string, string] => [cut(to.graph.name(at), 36), shortType(to.graph.type(at))]);
    parts.push(list(rows, kernels.length - MOST, (row) => this.#choose(kernels[row]!, "hlo")));
    return parts;
  }

  /** The equations that a kernel was made of, each with its fate. */
  #madeOf(kernel: number): Node[] {
    const { session } = this;
    const first = session.capture.stages[0]!;
    if (session.stage.name !== "hlo" || !first.fates || !session.stage.graph.isKernel(kernel)) return [];
    const { fates, graph } = first;
    const equations = fates.ofKernel(graph, kernel);
    if (!equations.length) return [];
    const rows = equations.slice(0, MOST).map((node): [string, string, boolean, string] => {
      const line = session.lines.place(graph, node)?.line;
      const what = `${fates.kind(node)}${line ? ` · l. ${line}` : ""}`;
      return [opText(graph.op(node)), what, fates.isInferred(node), fates.why(node)];
    });
    const inferred = rows.some(([, , isInferred]) => isInferred) ? [element("i.inferred", "≈ inferred")] : [];
    return [
      heading(`made of ${count(equations.length, "equation")}`, ...inferred),
      list(rows, equations.length - MOST, (row) => this.#choose(equations[row]!, first.name)),
    ];
  }

  /** How many equations of the program have each fate; clicking one lights them up. */
  #fates(): Node[] {
    const { session } = this;
    const stage = session.stage.fates ? session.stage : session.capture.stages[0]!;
    if (!stage.fates) return [];
    const counts = stage.fates.counts();
    if (!counts.length) return [];
    const rows = counts.map(([kind, nodes]): [string, string] => [kind, number(nodes.length)]);
    const light = (row: number) => session.focusNodes(stage.name, counts[row]![1], counts[row]![0]);
    return [heading(`what happened to the ${units(stage.name, 2).replace(/^\S+ /, "")}`), list(rows, 0, light)];
  }

  #choose(node: number, stage = this.session.stage.name): void {
    this.session.setStage(stage);
    this.session.focusNode(node);
    this.reveal(node);
  }

  /** The stack that a node's line is of, and how that is known where it isn't its own. */
  #origin(node: number, place: SourceLine | undefined): Node[] {
    const { capture, stage } = this.session;
    const { graph } = stage;
    const { attribution } = graph.c;
    const owner = attribution.owner(node);
    const equation = attribution.equation(owner);
    const first = capture.stages[0]!.graph;
    const stack = equation === undefined ? graph.stack(owner) : first.stack(equation);
    if (!stack.length) return [heading("from"), note("The compiler recorded no source location for it.")];
    const parts = [heading("from"), stackOf(this.session, stack, place)];
    const name = equation === undefined ? "" : first.name(equation);
    const whose = name && `, whose line is that of the equation ${name}`;
    if (owner !== node)
      parts.push(note(`The compiler recorded no source location for it; it serves ${graph.name(owner)}${whose}.`));
    else if (name) parts.push(note(`Its metadata names another line, or none: it is the equation ${name}.`));
    return parts;
  }

  #nodes(nodes: number[]): Node {
    const { graph, name } = this.session.stage;
    const label = (node: number) =>
      name === "hlo"
        ? [computes(graph, node), graph.name(node)].filter(Boolean).join(" · ")
        : graph.op(node) === "parameter"
          ? graph.scope(node) || graph.name(node)
          : `${graph.name(node)} ${opText(graph.op(node))}`;
    const rows = nodes
      .slice(0, MOST)
      .map((node): [string, string] => [cut(label(node), 36), shortType(graph.type(node))]);
    return list(rows, nodes.length - MOST, (row) => this.#choose(nodes[row]!));
  }

  /** The most frequent operations: clicking one finds them all. */
  #operations(nodes: Int32Array): Node[] {
    const { c } = this.session.stage.graph;
    const tally = new Int32Array(c.ops.length);
    for (const node of nodes) tally[c.op[node]!]!++;
    const counts = new Map(c.ops.map((op, code) => [op, tally[code]!] as const).filter(([, n]) => n));
    const ranked = [...counts].sort(([, a], [, b]) => b - a).slice(0, 12);
    const rows = ranked.map(([op, n]): [string, string] => [opText(op), number(n)]);
    const find = (row: number) => this.session.search(`op:${ranked[row]![0]}`);
    return [heading("operations"), list(rows, counts.size - ranked.length, find)];
  }
}

/** In HLO an operation runs as its own kernel or inside one. */
function fate(graph: Graph, node: number): string {
  const group = graph.c.groups[graph.c.groupOf[node]!];
  return group?.kind === "fusion" && group.caller >= 0 ? `fused into ${graph.name(group.caller)}` : "kept";
}
