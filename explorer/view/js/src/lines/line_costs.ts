// What each line of the source costs, and how shares are written.

import type { LineCost } from "../core/capture";
import { element } from "../core/dom";
import { amount, bytesText, count, number, secondsText } from "../core/labels";
import { lineKey } from "../core/links";

export type Measure = "seconds" | "flops" | "bytes";
export const MEASURES: Measure[] = ["seconds", "flops", "bytes"];
export const OF: Record<Measure, string> = { seconds: "of time", flops: "of FLOPs", bytes: "of bytes" };
export const OF_WHOLE: Record<Measure, string> = {
  seconds: "of the measured time",
  flops: "of the FLOPs",
  bytes: "of the bytes moved",
};
export const IN_GRAPH: Record<Measure, string> = { seconds: "time", bytes: "bytes", flops: "flops" }; // its columns
export const ONE_ITERATION = "one iteration counted: how often its loop runs is not known";
const INTENSE = 10; // FLOPs a byte: above, arithmetic takes the time, below, memory does

export const amountOf: Record<Measure, (value: number) => string> = {
  seconds: secondsText,
  flops: amount,
  bytes: bytesText,
};

export class Costs {
  readonly measures: Measure[];
  /** The measure to show first: the time, or else what takes it. */
  readonly first: Measure;
  readonly #totals: Record<Measure, number>;
  readonly #ofLine: Map<string, LineCost>;

  constructor(readonly lines: LineCost[]) {
    const total = (measure: Measure) => lines.reduce((all, line) => all + (line[measure] ?? 0), 0);
    this.#totals = { seconds: total("seconds"), flops: total("flops"), bytes: total("bytes") };
    this.measures = MEASURES.filter((measure) => this.#totals[measure] > 0);
    const { seconds, flops, bytes } = this.#totals;
    this.first = seconds ? "seconds" : flops > INTENSE * bytes ? "flops" : "bytes";
    this.#ofLine = new Map(lines.map((line) => [lineKey(line.file, line.line), line]));
  }

  at = (key: string): LineCost | undefined => this.#ofLine.get(key);
  total = (measure: Measure): number => this.#totals[measure];

  share(line: LineCost, measure: Measure): number {
    const total = this.#totals[measure];
    return total ? (line[measure] ?? 0) / total : 0;
  }

  about(line: LineCost): string {
    const parts = this.measures.map(
      (measure) =>
        `${percent(this.share(line, measure)) || "0%"} ${OF[measure]} (${amountOf[measure](line[measure] ?? 0)})`,
    );
    const made = `${count(line.equations, "equation")} in ${count(line.kernels, "kernel")}`;
    return `${parts.join(", ")}: ${made}${line.one_iteration ? `; ${ONE_ITERATION}` : ""}`;
  }
}

/** Empty for nothing; never rounded to nothing. */
export function percent(share: number): string {
  if (!(share > 0)) return "";
  if (share < 0.005) return "<1%";
  return `${number(Math.round(share * 100))}%`;
}

/** A percentage on a bar of that length; marked where it is that of one iteration. */
export function shareBar(share: number, isOneIteration = false): HTMLElement {
  const bar = element("span.share", percent(share));
  if (isOneIteration) bar.prepend(element("abbr", { title: ONE_ITERATION, "aria-label": ONE_ITERATION }, "×?"));
  bar.style.setProperty("--share", `${Math.min(100 * share, 100).toFixed(1)}%`);
  return bar;
}
