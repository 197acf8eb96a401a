// The user's lines, and the colour that follows each of them through every pane.

import { made } from "../core/buckets";
import type { Capture, Source } from "../core/capture";
import type { Graph } from "../core/graph";
import { lineKey, type SourceLine } from "../core/links";
import { Costs } from "../lines/line_costs";

export const COLOURS = 6;

export class Lines {
  /** The sources to read: the user's own first, libraries after. */
  readonly sources: Source[];
  readonly #colours = new Map<string, number>();
  readonly #texts = new Map<string, string[]>();

  constructor(private readonly capture: Capture) {
    const { sources } = capture.header;
    const isLibrary = (source: Source) => this.isLibrary(source);
    this.sources = [...sources.filter((source) => !isLibrary(source)), ...sources.filter(isLibrary)];
    this.#assignColours();
  }

  isLibrary = ({ file }: Source): boolean => this.capture.header.libraries?.includes(file) ?? false;
  place = (graph: Graph, node: number): SourceLine | undefined => graph.c.attribution.place(node);
  colour = (place: SourceLine | undefined): number => (place ? this.colourOf(place.file, place.line) : -1);
  colourOf = (file: string, line: number): number => this.#colours.get(lineKey(file, line)) ?? -1;

  /** The text of a line, without its indentation; empty where it isn't known. */
  textOf(file: string, line: number): string {
    const source = () => this.sources.find((source) => source.file === file);
    return made(this.#texts, file, () => source()?.text.split("\n") ?? [])[line - 1]?.trim() ?? "";
  }

  /**
   * A line has one colour in every stage and pane, and no other line has it: the lines that cost most get one. A line
   * that left nothing in the last stage comes after those that did.
   */
  #assignColours(): void {
    const costs = new Costs(this.capture.header.lines ?? []);
    const places = new Map<string, { file: number; line: number; isGone: number; cost: number }>();
    const order = new Map(this.sources.map((source, i) => [source.file, i]));
    for (const [i, { attribution }] of this.capture.stages.entries())
      for (const [code, { file, line }] of attribution.places.entries())
        if (attribution.nodesAt(code).length)
          places.set(lineKey(file, line), {
            file: order.get(file) ?? 1e9,
            line,
            isGone: Number(i < this.capture.stages.length - 1),
            cost: costs.at(lineKey(file, line))?.[costs.first] ?? 0,
          });
    const sorted = [...places].sort(
      ([, a], [, b]) => a.isGone - b.isGone || b.cost - a.cost || a.file - b.file || a.line - b.line,
    );
    for (const [i, [key]] of sorted.slice(0, COLOURS).entries()) this.#colours.set(key, i);
  }
}
