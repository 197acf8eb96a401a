// The user's source, with the colour of the kernels each line became, and its share of what they cost.

import { lineKey } from "../core/attribution";
import type { Source } from "../core/capture";
import { element } from "../core/dom";
import { isInKernel, kernelsOf, number } from "../core/labels";
import { pythonSpans } from "../core/python_text";
import type { Session } from "../core/session";
import { Costs, type Measure, OF, shareBar } from "../lines/line_costs";
import { badge, type Finding } from "./finding_badge";

const WHOLE = 160; // lines: a longer file shows only what the program touches
const AROUND = 4; // lines of context then

export class SourcePane {
  readonly root: HTMLElement;
  readonly #rows = new Map<string, HTMLElement>();
  readonly #list = element("div", { role: "list", "aria-label": "source" });
  readonly #head = element("button", { type: "button", class: "share-of" });
  readonly #costs: Costs;
  #by: Measure;
  /** By line; those without a line stand above all. Made once: what is open stays so in every stage. */
  readonly #pits = new Map<string, HTMLElement[]>();
  #pit = -1;

  constructor(private readonly session: Session) {
    this.#costs = new Costs(session.capture.header.lines);
    this.#by = this.#costs.first;
    this.root = element("div.explorer-source", element("div.share-head", this.#head), this.#list);
    this.#head.hidden = !this.#costs.measures.length;
    this.#head.addEventListener("click", () => {
      const { measures } = this.#costs;
      this.#by = measures[(measures.indexOf(this.#by) + 1) % measures.length]!;
      this.fill();
      this.light();
    });
    const { findings } = session.capture.header.findings ?? { findings: [] };
    for (const finding of findings) {
      const key = this.#keyOf(finding);
      this.#pits.set(key, [...(this.#pits.get(key) ?? []), badge(finding)]);
    }
    this.fill();
    this.#listen();
  }

  #keyOf({ file, line }: Finding): string {
    const source = this.session.lines.sources.find((source) => source.file === file);
    return source && line > 0 && line <= source.text.split("\n").length ? lineKey(file, line) : "";
  }

  /** Open the next pitfall, from the top. */
  showPitfall(): void {
    const all = [...this.#list.querySelectorAll<HTMLElement>(".pit")];
    this.#pit = (this.#pit + 1) % all.length;
    const shown = all[this.#pit]!;
    shown.querySelector("details")!.open = true;
    intoSight(this.root, shown.offsetTop - 40, shown.offsetHeight + 40);
    shown.querySelector("summary")!.focus({ preventScroll: true });
  }

  /** Draw the lines with what the current stage made of each. */
  fill(): void {
    const { session } = this;
    const { header } = session.capture;
    this.#list.replaceChildren(...(this.#pits.get("") ?? []));
    this.#rows.clear();
    const others = this.#costs.measures.filter((measure) => measure !== this.#by).map((measure) => OF[measure]);
    this.#head.replaceChildren(`% ${OF[this.#by]}`, element("i", { "aria-hidden": "true" }, " ▾"));
    const click = others.length ? ` Click for that ${others.join(", ")}.` : "";
    this.#head.title = `Each line's share ${OF[this.#by]} that the whole program takes.${click}`;
    const counts = this.#counts();
    const { sources } = session.lines;
    for (const source of sources) {
      const touched = [...counts.keys(), ...this.#pits.keys()]
        .filter((key) => key.endsWith(`\u0000${source.file}`))
        .map((key) => Number(key.split("\u0000")[0]));
      if (!touched.length && source.file !== header.file) continue;
      if (sources.length > 1) this.#list.append(element("div.file", source.label));
      this.#fillFile(source, new Set(touched), counts);
    }
    if (!sources.length) this.#list.append(element("div.empty", "The source text is not known."));
  }

  #fillFile(source: Source, touched: Set<number>, counts: Map<string, Map<number, number>>): void {
    const lines = source.text.replace(/\n$/, "").split("\n");
    const near = (line: number) => {
      for (let at = line - AROUND; at <= line + AROUND; at++) if (touched.has(at)) return true;
      return line === this.session.capture.header.line;
    };
    const shown = lines.map((_, i) => lines.length <= WHOLE || near(i + 1));
    let gap = false;
    lines.forEach((text, i) => {
      if (!shown[i]) {
        gap = true;
        return;
      }
      if (gap) this.#list.append(element("div.gap", "⋯"));
      gap = false;
      const line = i + 1;
      const key = lineKey(source.file, line);
      const colours = counts.get(key);
      const marks = element("span.marks");
      // At most three colours: more mean no more than "many".
      const ranked = [...(colours ?? [])].sort(([, a], [, b]) => b - a).slice(0, 3);
      for (const [colour] of ranked) marks.append(element("i", { class: `k${colour}` }));
      const total = [...(colours?.values() ?? [])].reduce((a, b) => a + b, 0);
      const row = element(
        "div",
        {
          class: total ? "line used" : "line",
          role: "listitem",
          tabindex: total ? "0" : "-1",
          "data-line": line,
          "data-file": source.file,
        },
        element("span.number", String(line)),
        marks,
        element("span.code", ...pythonSpans(text || " ")),
        this.#share(key, total),
      );
      this.#rows.set(key, row);
      this.#list.append(row, ...(this.#pits.get(key) ?? []));
    });
  }

  /** What a line costs; before there are kernels, how many operations it made. */
  #share(key: string, total: number): HTMLElement {
    if (!this.#costs.measures.length)
      return element("span.count", { title: total ? "operations of this stage" : "" }, total ? number(total) : "");
    const line = this.#costs.at(key);
    if (!line) return element("span.count");
    const isOne = this.#by !== "seconds" && line.one_iteration;
    return element(
      "span.count",
      { title: this.#costs.about(line) },
      shareBar(this.#costs.share(line, this.#by), isOne),
    );
  }

  /** For each line, how many nodes of the stage belong to it, by the colour of the kernel that runs them. */
  #counts(): Map<string, Map<number, number>> {
    const { stage, lines } = this.session;
    const { graph } = stage;
    const { groupOf, attribution } = graph.c;
    const colourOfGroup = new Map<number, number>(); // there are few groups, and a hundred thousand nodes
    const colourOf = (node: number, own: number): number => {
      if (!isInKernel(graph, node)) return own;
      const group = groupOf[node]!;
      if (!colourOfGroup.has(group)) {
        const [kernel = -1] = kernelsOf(graph, [node]);
        colourOfGroup.set(group, lines.colour(attribution.place(kernel)));
      }
      return colourOfGroup.get(group)!;
    };
    const counts = new Map<string, Map<number, number>>();
    for (const [code, { file, line }] of attribution.places.entries()) {
      const own = Math.max(lines.colourOf(file, line), 0);
      const of = new Map<number, number>();
      for (const node of attribution.nodesAt(code)) {
        const colour = colourOf(node, own);
        of.set(colour < 0 ? own : colour, (of.get(colour < 0 ? own : colour) ?? 0) + 1);
      }
      if (of.size) counts.set(lineKey(file, line), of);
    }
    return counts;
  }

  light(): void {
    const { focus, preview } = this.session;
    for (const [key, row] of this.#rows) {
      row.classList.toggle("lit", focus.lines.has(key));
      row.classList.toggle("over", preview.lines.has(key));
    }
  }

  /** Bring the first line in focus into sight. */
  scroll(): void {
    const key = [...this.session.focus.lines].find((line) => this.#rows.has(line));
    const row = this.#rows.get(key ?? "");
    if (row) intoSight(this.root, row.offsetTop, row.offsetHeight);
  }

  /** Start at the function itself. */
  toFunction(): void {
    const { file, line } = this.session.capture.header;
    const row = this.#rows.get(lineKey(file, line));
    if (row) this.root.scrollTop = Math.max(row.offsetTop - 30, 0);
  }

  #listen(): void {
    const rowOf = (target: EventTarget | null) =>
      (target as Element | null)?.closest?.<HTMLElement>("[data-line]") ?? undefined;
    const place = (row: HTMLElement): [string, number] => [row.dataset.file!, Number(row.dataset.line)];
    this.root.addEventListener("click", (event) => {
      const row = rowOf(event.target);
      if (row) this.session.focusLine(...place(row));
    });
    this.root.addEventListener("pointerover", (event) => {
      const row = rowOf(event.target);
      if (row) this.session.previewLine(...place(row));
      else this.session.previewItem(undefined);
    });
    this.root.addEventListener("pointerleave", () => this.session.previewItem(undefined));
    this.root.addEventListener("keydown", (event) => {
      const row = rowOf(event.target);
      if (!row) return;
      const next = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key] as
        | "nextElementSibling"
        | undefined;
      if (event.key === "Enter" || event.key === " ") this.session.focusLine(...place(row));
      else if (next) {
        let at = row[next];
        while (at && !at.classList.contains("used")) at = at[next];
        (at as HTMLElement | null)?.focus();
      } else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }
}

function intoSight(pane: HTMLElement, top: number, height: number): void {
  if (top < pane.scrollTop || top + height > pane.scrollTop + pane.clientHeight)
    pane.scrollTop = Math.max(top - pane.clientHeight / 3, 0);
}
