// Switches over a function: arguments donated, values recomputed, precision, options. A kernel compiles it so and holds
// it against the function as it is; without one they say what to run.

import { button, choices, copied, element } from "../core/dom";
import { type Answer, type Model, NO_KERNEL, PythonLink } from "../core/kernel_link";
import { bytesText, secondsText } from "../core/labels";
import { addSheet } from "../core/theme";
import sheet from "./what_if.css";

addSheet(sheet);

type Change = { donate?: boolean; remat?: boolean | string; precision?: string; options?: string; grad?: boolean };
type Pair = [plain: number | null, tried: number | null];

/** What explorer/view/capture/what_if_link.py says of a variant. */
interface Tried {
  name: string;
  error: string;
  verdict: string;
  notes: string[];
  pairs: Record<"seconds" | "memory" | "compile" | "kernels", Pair>;
  ratio: [ratio: number, low: number, high: number] | null;
  difference: string;
}

type Message = Answer & { what_if?: number; fraction?: number; doing?: string; tried?: Tried };

/** What is shown around it: a capture by its bytes, or with none as it is. */
export type Show = (wire: Uint8Array | undefined) => void;

const REMATS: [string, string][] = [
  ["", "as it is"],
  ["all", "recompute everything"],
  ["dots_saveable", "keep matrix products"],
  ["dots_with_no_batch_dims_saveable", "keep unbatched products"],
];
const PRECISIONS = ["as it is", "bfloat16", "tensorfloat32", "float32", "highest"];
const ROWS: [keyof Tried["pairs"], string, (value: number) => string][] = [
  ["seconds", "a call", secondsText],
  ["memory", "memory", bytesText],
  ["kernels", "kernels", String],
  ["compile", "compiling", secondsText],
];

let asked = 0; // of this page; each answer names what it is to

export class WhatIf {
  readonly root = element("div.whatif", { role: "region", "aria-label": "what if" });
  readonly #donate = element("input", { type: "checkbox" });
  readonly #grad = element("input", { type: "checkbox" });
  readonly #remat = menu(REMATS);
  readonly #precision = menu(PRECISIONS.map((name, i) => [i ? name : "", name]));
  readonly #options = element("input", {
    type: "text",
    placeholder: "xla_cpu_enable_fast_math=true",
    spellcheck: "false",
  });
  readonly #act = button({ class: "act" }, () => (this.#isBusy ? this.#cancel() : this.#try()), "compile it so");
  readonly #status = element("span.status", { role: "status" });
  readonly #result = element("div.result");
  readonly #link: PythonLink<Message>;
  #of = 0;
  #isBusy = false;

  constructor(
    id: string,
    model: Model | undefined,
    private readonly name: string,
    private readonly signature: string,
    private readonly show: Show,
  ) {
    const switches = [
      element("label", this.#donate, "donate all arguments that can be reused"),
      element("label", "recompute ", this.#remat),
      element("label", this.#grad, "of its gradient"),
      element("label", "precision ", this.#precision),
      element("label", "options of XLA ", this.#options),
    ];
    this.root.append(element("div.switches", ...switches, this.#act, this.#status), this.#result);
    this.root.addEventListener("change", () => this.#offer());
    this.#options.addEventListener("input", () => this.#offer());
    const answered = (message: Message, buffers: DataView[]) => this.#receive(message, buffers);
    this.#link = new PythonLink(this.root, id, { answered, changed: () => this.#offer() }, model);
    this.#offer();
  }

  dispose(): void {
    this.#link.stop();
  }

  get #change(): Change {
    const remat = this.#remat.value;
    return {
      ...(this.#donate.checked && { donate: true }),
      ...(remat && { remat: remat === "all" || remat }),
      ...(this.#grad.checked && { grad: true }),
      ...(this.#precision.value && { precision: this.#precision.value }),
      ...(this.#options.value.trim() && { options: this.#options.value.trim() }),
    };
  }

  get #isLive(): boolean {
    return this.#link.model?.get("shown")?.changes === true;
  }

  /** The call that does the same in Python. */
  get #call(): string {
    const names = this.signature.replace(/^\(|\)$/g, "").matchAll(/(?:^|, )([\w.[\]']+): /g);
    const args = [...names].map(([, name]) => name!);
    const options = this.#change.options?.split(",").map((part) => {
      const [key, value = ""] = part.split("=").map((side) => side.trim());
      return `${JSON.stringify(key)}: ${/^(true|false)$/i.test(value) ? capital(value) : python(value)}`;
    });
    const keywords = Object.entries(this.#change).map(([key, value]) =>
      key === "options" ? `options={${options!.join(", ")}}` : `${key}=${value === true ? "True" : `"${value}"`}`,
    );
    return `ex.what_if(${[this.name, ...args, ...keywords].join(", ")})`;
  }

  #offer(): void {
    if (this.#isBusy) return;
    const { grad: _, ...changes } = this.#change;
    const isAnything = Object.keys(changes).length > 0;
    this.#act.textContent = this.#isLive ? "compile it so" : "copy the command";
    this.#act.toggleAttribute("disabled", !isAnything);
    if (!isAnything) this.#status.textContent = "select a change";
    else if (this.#isLive) this.#status.textContent = "";
    else this.#status.replaceChildren("no kernel is connected to compile it; run ", element("code", this.#call));
  }

  #try(): void {
    const call = this.#call;
    const copy = (is: boolean) => is && this.#status.replaceChildren("copied: ", element("code", call));
    if (!this.#isLive) return void copied(call).then(copy);
    this.#of = ++asked;
    this.#busy(true);
    this.#status.textContent = "waiting for the kernel";
    if (!this.#link.send({ ask: "what-if", of: this.#of, change: this.#change }))
      this.#receive({ what_if: this.#of, failed: NO_KERNEL }, []);
  }

  #cancel(): void {
    this.#link.send({ ask: "cancel" });
    this.#status.textContent = "it stops after the current compile";
  }

  #busy(isBusy: boolean): void {
    this.#isBusy = isBusy;
    this.root.setAttribute("aria-busy", String(isBusy));
    this.#act.textContent = isBusy ? "cancel" : "compile it so";
  }

  #receive({ what_if, fraction, doing, tried, failed }: Message, buffers: DataView[]): void {
    if (what_if === undefined || what_if !== this.#of) return;
    if (doing) return void (this.#status.textContent = `${Math.round(100 * (fraction ?? 0))} % · ${doing}`);
    if (!tried && failed === undefined) return;
    this.#busy(false);
    this.#offer();
    this.#status.textContent = failed ?? "";
    if (!tried) return;
    const wire = buffers[0] && new Uint8Array(buffers[0].buffer, buffers[0].byteOffset, buffers[0].byteLength);
    this.#result.replaceChildren(...this.#told(tried, wire));
    // What a failed attempt leaves is the function as it is, not what was tried before.
    this.show(tried.error ? undefined : wire);
  }

  #told(tried: Tried, wire: Uint8Array | undefined): Node[] {
    const { name, verdict, notes, pairs, ratio, difference } = tried;
    const heading = element("p.verdict", element("b", name), ` ${verdict}.`);
    if (tried.error) return [heading];
    const rows = ROWS.filter(([key]) => pairs[key].some((value) => value !== null)).map(([key, title, text]) => {
      const [plain, now] = pairs[key].map((value) => (value === null ? "not known" : text(value)));
      const seen = key === "seconds" && ratio ? ratioText(ratio) : "";
      return tableRow(title, plain!, plain === now ? "the same" : now!, seen);
    });
    if (difference) rows.push(tableRow("results", "", resultsText(difference)));
    const titles = element("tr", element("td"), element("th", "as it is"), element("th", "changed"));
    const table = element("table", titles, ...rows);
    const parts: Node[] = [heading, table, ...notes.map((note) => element("p.note", note))];
    if (wire) parts.splice(1, 0, this.#sides(wire));
    return parts;
  }

  /** Which of the two is in the picture below. */
  #sides(wire: Uint8Array): HTMLElement {
    const root = element("div.sides", { role: "group", "aria-label": "the picture shows it" });
    const sides = [[undefined, "as it is"] as const, [wire, "changed"] as const];
    const mark = choices<Uint8Array | undefined>(root, sides, (side) => {
      mark(side);
      this.show(side);
    });
    mark(wire);
    return root;
  }
}

const capital = (text: string): string => text[0]!.toUpperCase() + text.slice(1).toLowerCase();
const python = (value: string): string =>
  value !== "" && !Number.isNaN(Number(value)) ? value : JSON.stringify(value);

const tableRow = (title: string, ...cells: string[]): HTMLElement =>
  element("tr", element("th", { scope: "row" }, title), ...cells.map((cell) => element("td", cell)));

const resultsText = (difference: string): string =>
  difference === "none" ? "the same" : /^\d/.test(difference) ? `differ by ${difference} of the largest` : difference;

function ratioText([ratio, low, high]: [number, number, number]): string {
  const two = (value: number) => value.toFixed(2);
  const isSeen = low > 1 || high < 1;
  return isSeen ? `${two(ratio)}× (${two(low)} … ${two(high)})` : `no difference seen (${two(low)} … ${two(high)}×)`;
}

function menu(choices: [value: string, text: string][]): HTMLSelectElement {
  return element("select", ...choices.map(([value, text]) => element("option", { value }, text)));
}
