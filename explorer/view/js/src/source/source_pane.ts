// The user's source, each line with its colour and its share of what the program costs.

import { push } from "../core/buckets";
import type { Capture, Source } from "../core/capture";
import { button, coded, dataAt, element, onKey, onParts, rove } from "../core/dom";
import { count, number } from "../core/labels";
import { lineKey } from "../core/links";
import { pythonSpans } from "../core/python_text";
import type { Session } from "../core/session";
import { Costs, OF_WHOLE, ONE_ITERATION, percent } from "../lines/line_costs";

const WHOLE = 160; // lines: a longer file shows only what the program touches
const AROUND = 4; // lines of context then
const USED = ".line.used";
const FEW = 3; // lines that are gone: of more, only the chosen one says why

export class SourcePane {
  readonly #rows = new Map<string, HTMLElement>();
  readonly #list = element("div", { role: "list", "aria-label": "source" });
  readonly #head = button({ class: "share-of" }, () => {
    const { measures } = this.#costs;
    this.session.setCostBy(measures[(measures.indexOf(this.session.costBy) + 1) % measures.length]!);
  });
  readonly #library = button({ class: "library" }, () => {
    this.#isLibraryOpen = !this.#isLibraryOpen;
    this.fill();
    this.light();
  });
  readonly root = element("div.explorer-source", element("div.share-head", this.#library, this.#head), this.#list);
  /** The lines are one Tab stop: the costliest at first, then the one that the arrows have come to. */
  readonly #markStop = rove(this.#list, USED);
  readonly #costs: Costs;
  #gone_?: Map<string, Gone>;
  #isLibraryOpen = false;
  #most = 0; // the largest share of a line
  /** By line; those without a line stand above all. Made once: what is open stays so in every stage. */
  readonly #pits = new Map<string, HTMLElement[]>();
  #pit = -1;

  constructor(private readonly session: Session) {
    this.#costs = new Costs(session.capture.header.lines);
    this.#head.hidden = !this.#costs.measures.length;
    for (const finding of session.capture.header.findings.findings)
      push(this.#pits, this.#keyOf(finding), badge(finding));
    this.#listen();
  }

  /** Read when the first lines are drawn; it doesn't depend on the stage. */
  get #gone(): Map<string, Gone> {
    return (this.#gone_ ??= goneLines(this.session.capture));
  }

  #keyOf({ file, line }: Finding): string {
    const source = this.session.lines.sources.find((source) => source.file === file);
    return source && line > 0 && line <= source.text.split("\n").length ? lineKey(file, line) : "";
  }

  showPitfall(): void {
    const all = [...this.#list.querySelectorAll<HTMLElement>(".pit")];
    this.#pit = (this.#pit + 1) % all.length;
    const shown = all[this.#pit]!;
    shown.querySelector("details")!.open = true;
    intoSight(this.root, shown.offsetTop - 40, shown.offsetHeight + 40);
    shown.querySelector("summary")!.focus({ preventScroll: true });
  }

  fill(): void {
    const { session } = this;
    const { header } = session.capture;
    const stop = this.#list.querySelector<HTMLElement>(`${USED}[tabindex="0"]`)?.dataset;
    this.#list.replaceChildren(...(this.#pits.get("") ?? []));
    this.#rows.clear();
    const { measures } = this.#costs;
    const { costBy } = session;
    const others = measures.filter((measure) => measure !== costBy).map((measure) => OF_WHOLE[measure]);
    this.#head.replaceChildren(`% ${OF_WHOLE[costBy]}`, element("i", { "aria-hidden": "true" }, " ▾"));
    const click = others.length ? ` Click for that ${others.join(", ")}.` : "";
    this.#head.title = `Each line's share ${OF_WHOLE[costBy]} by the whole program.${click}`;
    this.#most = Math.max(...this.#costs.lines.map((line) => this.#costs.share(line, costBy)), 1e-9);
    this.#list.classList.toggle("few", this.#gone.size <= FEW);
    const counts = this.#counts();
    const { sources } = session.lines;
    let folded = 0;
    for (const source of sources) {
      const touched = [...counts.keys(), ...this.#pits.keys()]
        .filter((key) => key.endsWith(`\u0000${source.file}`))
        .map((key) => Number(key.split("\u0000")[0]));
      if (!touched.length && source.file !== header.file) continue;
      if (session.lines.isLibrary(source)) {
        folded++;
        if (!this.#isLibraryOpen) continue;
      }
      if (sources.length > 1) this.#list.append(element("div.file", source.label));
      this.#fillFile(source, new Set(touched), counts);
    }
    this.#library.hidden = !folded;
    const files = count(folded, "file");
    this.#library.textContent = this.#isLibraryOpen ? "fold library code" : `show library code (${files})`;
    if (!sources.length) this.#list.append(element("div.empty", "The source text is not known."));
    this.#markStop(stop && this.#rows.get(lineKey(stop.file!, Number(stop.line))));
  }

  #fillFile(source: Source, touched: Set<number>, counts: Map<string, number>): void {
    const lines = source.text.replace(/\n$/, "").split("\n");
    const near = (line: number) =>
      line === this.session.capture.header.line || [...touched].some((at) => Math.abs(at - line) <= AROUND);
    let last = 0;
    for (const [i, text] of lines.entries()) {
      const line = i + 1;
      if (lines.length > WHOLE && !near(line)) continue;
      if (line > last + 1) this.#list.append(element("div.gap", "⋯"));
      last = line;
      const key = lineKey(source.file, line);
      const total = counts.get(key) ?? 0;
      const marks = element("span.marks");
      if (total) marks.append(element("i", { class: `k${this.session.lines.colourOf(source.file, line)}` }));
      const gone = total && this.#costs.at(key)?.kernels ? undefined : this.#gone.get(key);
      const about = { class: total ? "line used" : "line", "data-line": line, "data-file": source.file };
      const row = element(
        "div",
        { ...about, role: "listitem", tabindex: "-1" },
        element("span.number", String(line)),
        marks,
        element("span.code", ...pythonSpans(text || " ")),
        gone ? element("span.count", { title: gone.text }, gone.word) : this.#share(key, total),
      );
      this.#rows.set(key, row);
      this.#list.append(row);
      if (gone) this.#list.append(element("div.gone", { role: "listitem" }, gone.text));
      this.#list.append(...(this.#pits.get(key) ?? []));
    }
  }

  /** What a line costs; before there are kernels, how many operations it made. */
  #share(key: string, total: number): HTMLElement {
    if (!this.#costs.measures.length)
      return element("span.count", { title: total ? "operations of this stage" : "" }, total ? number(total) : "");
    const line = this.#costs.at(key);
    if (!line) return element("span.count");
    const share = this.#costs.share(line, this.session.costBy);
    const isOne = this.session.costBy !== "seconds" && line.one_iteration;
    const style = `width: ${((100 * share) / this.#most).toFixed(1)}%`;
    const bar = element("i", { "aria-hidden": "true", style });
    return element(
      "span.count",
      { title: this.#costs.about(line) },
      element("span.bar", ...(share > 0 ? [bar] : [])),
      ...(isOne ? [element("abbr", { title: ONE_ITERATION, "aria-label": ONE_ITERATION }, "×?")] : []),
      percent(share),
    );
  }

  #counts(): Map<string, number> {
    const { attribution } = this.session.stage;
    const counts = attribution.places.map(({ file, line }, code): [string, number] => [
      lineKey(file, line),
      attribution.nodesAt(code).length,
    ]);
    return new Map(counts.filter(([, nodes]) => nodes));
  }

  light(): void {
    const { focus, preview } = this.session;
    for (const [key, row] of this.#rows) {
      row.classList.toggle("lit", focus.lines.has(key));
      row.classList.toggle("over", preview.lines.has(key));
      // What is chosen shows why it is gone.
      row.classList.toggle("whole", focus.line !== undefined && focus.lines.has(key));
      const note = this.session.noteOn(key);
      row.classList.toggle("noted", note !== undefined);
      const number = row.firstElementChild as HTMLElement;
      if (number.title !== (note ?? "")) number.title = note ?? "";
    }
  }

  scroll(): void {
    const key = [...this.session.focus.lines].find((line) => this.#rows.has(line));
    const row = this.#rows.get(key ?? "");
    if (row) intoSight(this.root, row.offsetTop, row.offsetHeight);
  }

  /** Start at the line that costs most: at the function itself, where both are in sight. */
  toCost(): void {
    const { header } = this.session.capture;
    const start = this.#rows.get(lineKey(header.file, header.line));
    const { costBy } = this.session;
    const costs = [...this.#costs.lines].sort((a, b) => this.#costs.share(b, costBy) - this.#costs.share(a, costBy));
    const line = costs.find(({ file, line }) => this.#rows.has(lineKey(file, line)));
    const row = (line && this.#rows.get(lineKey(line.file, line.line))) ?? start;
    if (!row) return;
    if (row.matches(USED)) this.#markStop(row);
    const { clientHeight } = this.root;
    const isNear = start && row.offsetTop >= start.offsetTop && row.offsetTop - start.offsetTop < 0.7 * clientHeight;
    this.root.scrollTop = Math.max(isNear ? start.offsetTop - 30 : row.offsetTop - clientHeight / 3, 0);
  }

  #listen(): void {
    const { root, session } = this;
    const place = (event: Event): [string, number] | undefined => {
      const line = dataAt(event, "line");
      return line === undefined ? undefined : [dataAt(event, "file")!, Number(line)];
    };
    const choose = (at: [string, number]) => session.focusLine(...at);
    onParts(root, place, choose, (at) => (at ? session.previewLine(...at) : session.previewItem(undefined)));
    onKey(root, (event) => {
      const at = event.key === "Enter" || event.key === " " ? place(event) : undefined;
      return at && (() => choose(at));
    });
  }
}

function intoSight(pane: HTMLElement, top: number, height: number): void {
  if (top < pane.scrollTop || top + height > pane.scrollTop + pane.clientHeight)
    pane.scrollTop = Math.max(top - pane.clientHeight / 3, 0);
}

export interface Finding extends Record<"rule" | "message" | "file" | "evidence" | "code" | "documentation", string> {
  severity: "error" | "warning" | "note";
  line: number;
  fix: { text: string };
}

// A severity is never shown by colour alone.
const SIGNS = { error: "✖", warning: "▲", note: "●" };

export function badge({ severity, message, evidence, fix, code, rule, documentation }: Finding): HTMLElement {
  const facts = Object.entries({ observed: evidence, fix: fix.text, ignore: `# explorer: ignore[${code || rule}]` });
  const address = { href: documentation, target: "_blank", rel: "noopener noreferrer" };
  const page = /^https?:/.test(documentation) ? [element("a", address, "JAX’s documentation")] : [];
  const sign = element("i", { "aria-hidden": "true" }, `${SIGNS[severity]} `);
  const details = element(
    "details",
    element("summary", element("b", sign, severity), "\u00a0", ...coded(message)),
    ...facts.map(([name, text]) => element("p", element("i", name), " ", ...coded(text || "–"))),
    element("p", element("i", `${code} ${rule} `), ...page),
  );
  return element("div", { role: "listitem", class: `pit ${severity}` }, details);
}

/** `✖ 1 ▲ 2`: how many there are of each kind. */
export const tally = (findings: Finding[]): string =>
  Object.entries(SIGNS)
    .map(([severity, sign]) => [sign, findings.filter((finding) => finding.severity === severity).length] as const)
    .filter(([, count]) => count)
    .map(([sign, count]) => `${sign} ${count}`)
    .join(" ");

interface Gone {
  /** `gone`, or `folded` where all of it was computed while compiling. */
  word: string;
  /** `removed by algsimp (pass 3): x · 1 is x`. */
  text: string;
}

const MOST_REASONS = 2;

/** By the line's key; a line is gone if each of its equations was eliminated or folded. */
function goneLines(capture: Capture): Map<string, Gone> {
  const gone = new Map<string, Gone>();
  const [first] = capture.stages;
  const fates = first?.fates;
  if (!first || !fates) return gone;
  for (const [code, { file, line }] of first.attribution.places.entries()) {
    const equations = [...first.attribution.nodesAt(code)].filter((node) => fates.kind(node));
    const isGone = (node: number) => /^(eliminated|folded)$/.test(fates.kind(node)) && !fates.isInferred(node);
    if (!equations.length || !equations.every(isGone)) continue;
    const isFolded = equations.every((node) => fates.kind(node) === "folded");
    const why = new Map<string, string[]>();
    for (const node of equations) push(why, fates.stepText(fates.step(node)), fates.why(node));
    const reasons = [...why].map(([step, texts]) => {
      const [text] = [...new Set(texts.filter(Boolean))];
      return `${step ? `by ${step}` : "by the compiler"}${text ? `: ${text}` : ""}`;
    });
    const verb = isFolded ? "computed while compiling, " : "removed ";
    gone.set(lineKey(file, line), {
      word: isFolded ? "folded" : "gone",
      text: verb + reasons.slice(0, MOST_REASONS).join("; ") + (reasons.length > MOST_REASONS ? "; …" : ""),
    });
  }
  return gone;
}
