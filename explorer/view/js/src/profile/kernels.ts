// The kernels: all, or those that something of what is chosen runs in.

import { button, code, element, onKey, sortHead } from "../core/dom";
import { amount, bytesText, count, number, secondsText } from "../core/labels";
import { type Chosen, type Data, type Kernel, nothing } from "./data";
import { bar, box, part, placeText, roving, shareText } from "./format";

type Column = "time" | "of" | "total" | "count" | "wasted" | "name";
const STEP = 60; // rows at once
const TITLES: Record<Column, string> = {
  name: "kernel",
  time: "time",
  of: "of the kernel",
  total: "with its body",
  count: "runs",
  wasted: "wasted",
};

export class KernelsPane {
  readonly root = box("kernels");
  readonly #title = element("b", { "aria-live": "polite" });
  readonly #all = button({ class: "pf-link" }, () => this.clear(), "all kernels");
  readonly #table = element("div.pf-table", { role: "grid", "aria-label": "kernels" });
  readonly #columnsOfAll: Column[] = ["name", "time", "count"];
  #columns: Column[] = [];
  #by: Column = "time";
  #down = true;
  #most = STEP;
  #chosen = nothing();
  /** The line or box whose kernels alone are shown. */
  #of = nothing();
  #open?: Kernel;
  #rows: [Kernel, HTMLElement][] = [];

  constructor(
    private readonly data: Data,
    private readonly choose: (kernel: Kernel) => void,
    private readonly preview: (kernel?: Kernel) => void,
    private readonly clear: () => void,
    private readonly look: (kernel: Kernel) => HTMLElement[],
  ) {
    const { kernels } = data;
    if (kernels.some(({ total, seconds }) => total > seconds * 1.001)) this.#columnsOfAll.splice(2, 0, "total");
    if (data.hasWasted) this.#columnsOfAll.push("wasted");
    this.root.append(box("tools", this.#title, this.#all), this.#table);
    roving(this.#table, () => this.#rows);
    this.#table.addEventListener("pointerleave", () => this.preview());
    this.#draw();
  }

  #draw(): void {
    const { kernels } = this.data;
    const isSome = this.#of.line !== undefined || this.#of.box !== undefined;
    const of = new Map((this.#of.line?.kernels ?? []).map(({ kernel, seconds }) => [kernel, seconds]));
    this.#columns = this.#of.line ? ["name", "time", "of", "count"] : this.#columnsOfAll;
    if (!this.#columns.includes(this.#by)) this.#by = "time";
    const kept = isSome ? kernels.filter((kernel) => this.#of.kernels.has(kernel)) : kernels;
    const value = (kernel: Kernel): number => {
      const { seconds, total, count, wasted } = kernel;
      const share = (of.get(kernel) ?? 0) / seconds;
      return { time: of.get(kernel) ?? seconds, of: share, total, count, wasted: wasted ?? -1, name: 0 }[this.#by];
    };
    const order = (a: Kernel, b: Kernel) => (this.#by === "name" ? (a.name < b.name ? 1 : -1) : value(b) - value(a));
    const sorted = [...kept].sort((a, b) => order(a, b) * (this.#down ? 1 : -1));
    const [more, seconds] = this.data.message.moreKernels;
    this.#title.textContent = this.#heading(kept.length + (isSome ? 0 : more));
    this.#all.hidden = !isSome;
    this.#rows = [];
    const drawn = sorted.slice(0, this.#most).flatMap((kernel) => this.#row(kernel, of.get(kernel)));
    this.#table.replaceChildren(this.#head(), ...drawn);
    this.root.querySelector(".pf-rest")?.remove();
    this.root.append(this.#rest(sorted.length - this.#most, isSome ? 0 : more, seconds));
    const first = this.#rows.find(([kernel]) => kernel === this.#open) ?? this.#rows[0];
    if (first) first[1].tabIndex = 0;
  }

  #heading(kernels: number): string {
    const { line, box } = this.#of;
    const many = count(kernels, "kernel");
    return line ? `${many} of ${placeText(line, this.data)}` : box ? `${many} in ${box.name}` : many;
  }

  #head(): HTMLElement {
    const cells = this.#columns.map((column) => {
      const down = column === this.#by ? this.#down : undefined;
      return sortHead({ class: `pf-c-${column}` }, TITLES[column], () => this.#sort(column), down);
    });
    return element("div.pf-row.pf-columns", { role: "row" }, ...cells);
  }

  #sort(column: Column): void {
    this.#down = column === this.#by ? !this.#down : column !== "name";
    this.#by = column;
    this.#draw();
    (this.#table.querySelector(`.pf-columns .pf-c-${column} button`) as HTMLElement).focus();
  }

  #row(kernel: Kernel, of: number | undefined): HTMLElement[] {
    const { data } = this;
    const isOpen = kernel === this.#open;
    const cells: Record<Column, () => (Node | string)[]> = {
      name: () =>
        kernel.computes
          ? [element("b", kernel.computes), " ", part("mute", `${this.#about(kernel)} · ${kernel.name}`)]
          : [code(kernel.name), " ", part("mute", this.#about(kernel))],
      time: () => [
        part("time", secondsText(of ?? kernel.seconds)),
        bar(data.share(of ?? kernel.seconds), data.heat("kernel", of ?? kernel.seconds)),
      ],
      of: () => [shareText((of ?? 0) / kernel.seconds)],
      total: () => [kernel.total > kernel.seconds * 1.001 ? secondsText(kernel.total) : ""],
      count: () => [`${Math.round(kernel.count).toLocaleString("en")} ×`],
      wasted: () => [kernel.wasted === null ? part("mute", "unknown") : secondsText(kernel.wasted)],
    };
    const about = { role: "row", tabindex: -1, "aria-selected": "false", "data-kernel": kernel.index };
    const drawn = this.#columns.map((column) =>
      element("span", { role: "gridcell", class: `pf-c-${column}` }, ...cells[column]()),
    );
    const made = element("div.pf-row.pf-kernel-row", about, ...drawn);
    const act = () => {
      this.#open = isOpen ? undefined : kernel;
      if (!isOpen && this.#chosen.kernel !== kernel) this.choose(kernel);
      this.#draw();
      this.light(this.#chosen, this.#chosen);
      this.#rows.find(([of]) => of === kernel)?.[1].focus({ preventScroll: true });
    };
    made.addEventListener("click", act);
    onKey(made, ({ key }) => (key === "Enter" || key === " " ? act : undefined));
    made.addEventListener("pointerenter", () => this.preview(kernel));
    this.#rows.push([kernel, made]);
    return isOpen ? [made, this.#detail(kernel)] : [made];
  }

  /** Where a kernel comes from, and what its name leaves out. */
  #about({ name, op, module, lines, computes }: Kernel): string {
    const [first] = lines;
    const more = lines.length > 1 ? ` and ${lines.length - 1} more` : "";
    const place = first ? placeText(first.line, this.data) + more : "no line";
    const parts = [computes || name.includes(op) ? "" : op, place, this.data.modules.length > 1 ? module : ""];
    return parts.filter(Boolean).join(" · ");
  }

  #detail(kernel: Kernel): HTMLElement {
    const { flops, bytes, seconds } = kernel;
    const rate = (value: number | null, unit: (value: number) => string, per: string) =>
      value !== null && seconds > 0 ? `${unit(value)}${per} a call, ${unit(value / seconds)}${per}/s` : "";
    const facts: [string, string][] = [
      ["computes", rate(flops, amount, "FLOP")],
      ["moves", rate(bytes, bytesText, "")],
      ["scope", kernel.scope],
      ["executable", kernel.module],
    ];
    const rows = facts.filter(([, text]) => text).map(([name, text]) => element("p", part("label", name), text));
    const lines = kernel.lines.slice(0, 8).map(({ line, seconds: its }) => {
      const label = part("label", placeText(line, this.data));
      return element("p", label, part("mute", `${shareText(its / seconds)} `), code(line.text));
    });
    const cell = element("div", { role: "gridcell", class: "pf-detail" }, ...rows, ...lines, ...this.look(kernel));
    return element("div", { role: "row" }, cell);
  }

  #rest(hidden: number, others: number, seconds: number): HTMLElement {
    const more = () => {
      this.#most += 4 * STEP;
      this.#draw();
      this.light(this.#chosen, this.#chosen);
    };
    const text = hidden > 4 * STEP ? `show ${4 * STEP} of ${number(hidden)} more` : `show ${hidden} more`;
    if (hidden > 0) return box("rest", button({ class: "pf-link" }, more, text));
    return box("rest", others ? `and ${number(others)} more kernels with ${secondsText(seconds)}` : "");
  }

  light(chosen: Chosen, preview: Chosen): void {
    if (chosen !== this.#chosen) {
      this.#chosen = chosen;
      const { line, box, kernel } = chosen;
      if (line || (box?.parent && !kernel)) this.#of = chosen;
      else if (!kernel || !this.#of.kernels.has(kernel)) this.#of = nothing();
      if (!kernel || box) this.#open = box && kernel;
      this.#most = STEP;
      this.#draw();
    }
    for (const [kernel, row] of this.#rows) {
      const isChosen = chosen.kernel === kernel || (chosen.line !== undefined && chosen.kernels.has(kernel));
      row.setAttribute("aria-selected", String(isChosen));
      row.classList.toggle("over", preview !== chosen && preview.kernels.has(kernel));
    }
  }
}
