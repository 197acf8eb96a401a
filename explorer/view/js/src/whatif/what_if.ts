// Switches over a function: arguments donated, values recomputed, precision, options. A kernel compiles it so and holds
// it against the function as it is; without one they say what to run.

import { copied } from "../core/clipboard";
import { element } from "../core/dom";
import { type Model, onModel } from "../core/kernel_link";
import { bytesText, secondsText } from "../core/labels";
import { addSheet } from "../core/style";
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

type Message = { what_if?: number; fraction?: number; doing?: string; tried?: Tried; failed?: string };

/** What is shown around it: a capture by its bytes, or with none as it is. */
export type Show = (wire: Uint8Array | undefined) => void;

const REMATS: [string, string][] = [
  ["", "as it is"],
  ["all", "recompute everything"],
  ["dots_saveable", "keep matrix products"],
  ["dots_with_no_batch_dims_saveable", "keep unbatched products"],
];
const PRECISIONS = ["as it is", "bfloat16", "tensorfloat32", "float32", "highest"].map((name, i): [string, string] => [
  i ? name : "",
  name,
]);
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
  readonly #precision = menu(PRECISIONS);
  readonly #options = element("input", {
    type: "text",
    placeholder: "xla_cpu_enable_fast_math=true",
    spellcheck: "false",
  });
  readonly #act = element("button.act", { type: "button" }, "compile it so");
  readonly #status = element("span.status", { role: "status" });
  readonly #result = element("div.result");
  #model: Model | undefined;
  #of = 0;
  #isBusy = false;
  readonly #stop: () => void;
  readonly #heard = (message: Message, buffers: DataView[]) => this.#receive(message, buffers);

  constructor(
    id: string,
    model: Model | undefined,
    private readonly name: string,
    private readonly signature: string,
    private readonly show: Show,
  ) {
    const labelled = (text: string, control: HTMLElement) => element("label", control, text);
    this.root.append(
      element(
        "div.switches",
        labelled("donate what can be reused", this.#donate),
        element("label", "recompute ", this.#remat),
        labelled("of its gradient", this.#grad),
        element("label", "precision ", this.#precision),
        element("label.options", "options of XLA ", this.#options),
        this.#act,
        this.#status,
      ),
      this.#result,
    );
    this.root.addEventListener("change", () => this.#offer());
    this.#options.addEventListener("input", () => this.#offer());
    this.#act.addEventListener("click", () => (this.#isBusy ? this.#cancel() : this.#try()));
    this.#stop = onModel(this.root, id, (next) => this.#follow(next), model);
    this.#offer();
  }

  dispose(): void {
    this.#follow(undefined);
    this.#stop();
  }

  #follow(model: Model | undefined): void {
    if (model === this.#model) return;
    this.#model?.off("msg:custom", this.#heard);
    this.#model = model;
    model?.on("msg:custom", this.#heard);
    this.#offer();
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
    return this.#model?.get("shown")?.changes === true;
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
    this.#act.textContent = this.#isLive ? "compile it so" : "copy what to run";
    this.#act.toggleAttribute("disabled", !isAnything);
    if (!isAnything) this.#status.textContent = "choose what to change";
    else if (this.#isLive) this.#status.textContent = "";
    else this.#status.replaceChildren("no kernel is here to compile it; run ", element("code", this.#call));
  }

  #try(): void {
    if (!this.#isLive) {
      const call = this.#call;
      void copied(call).then((is) => is && this.#status.replaceChildren("copied: ", element("code", call)));
      return;
    }
    this.#of = ++asked;
    this.#busy(true);
    this.#status.textContent = "waiting for the kernel";
    try {
      this.#model!.send({ ask: "what-if", of: this.#of, change: this.#change });
    } catch {
      this.#receive({ what_if: this.#of, failed: "No kernel answers: run the notebook again." }, []);
    }
  }

  #cancel(): void {
    this.#model?.send({ ask: "cancel" });
    this.#status.textContent = "it ends with the compile that runs";
  }

  #busy(isBusy: boolean): void {
    this.#isBusy = isBusy;
    this.root.setAttribute("aria-busy", String(isBusy));
    this.#act.textContent = isBusy ? "cancel" : "compile it so";
  }

  #receive({ what_if, fraction, doing, tried, failed }: Message, buffers: DataView[]): void {
    if (what_if === undefined || what_if !== this.#of) return;
    if (doing) {
      this.#status.textContent = `${Math.round(100 * (fraction ?? 0))} % · ${doing}`;
      return;
    }
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
      return element(
        "tr",
        element("th", { scope: "row" }, title),
        element("td", plain!),
        element("td", plain === now ? "the same" : now!),
        element("td", seen),
      );
    });
    if (difference)
      rows.push(
        element(
          "tr",
          element("th", { scope: "row" }, "results"),
          element("td"),
          element("td", resultsText(difference)),
        ),
      );
    const table = element(
      "table",
      element("tr", element("td"), element("th", "as it is"), element("th", "changed")),
      ...rows,
    );
    const parts: Node[] = [heading, table, ...notes.map((note) => element("p.note", note))];
    if (wire) parts.splice(1, 0, this.#sides(wire));
    return parts;
  }

  /** Which of the two is in the picture below. */
  #sides(wire: Uint8Array): HTMLElement {
    const choices: [string, Uint8Array | undefined][] = [
      ["as it is", undefined],
      ["changed", wire],
    ];
    const buttons = choices.map(([text, of], i) => {
      const made = element("button", { type: "button", "aria-pressed": String(i === 1) }, text);
      made.addEventListener("click", () => {
        for (const other of buttons) other.setAttribute("aria-pressed", String(other === made));
        this.show(of);
      });
      return made;
    });
    return element("div.sides", { role: "group", "aria-label": "the picture shows it" }, ...buttons);
  }
}

const capital = (text: string): string => text[0]!.toUpperCase() + text.slice(1).toLowerCase();
const python = (value: string): string =>
  value !== "" && !Number.isNaN(Number(value)) ? value : JSON.stringify(value);

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
