// The user's lines, and the colour that follows each of them through every pane.

import { lineKey, type SourceLine } from "../core/attribution";
import type { Capture, Source } from "../core/capture";
import type { Graph } from "../core/graph";

export const COLOURS = 6;

export class Lines {
  /** The sources to read: the user's own first, libraries after. */
  readonly sources: Source[];
  readonly #colours = new Map<string, number>();

  constructor(private readonly capture: Capture) {
    const { sources, libraries = [] } = capture.header;
    const isLibrary = ({ file }: Source) => libraries.includes(file);
    this.sources = [...sources.filter((source) => !isLibrary(source)), ...sources.filter(isLibrary)];
    this.#assignColours();
  }

  /** The line that a node belongs to. */
  place(graph: Graph, node: number): SourceLine | undefined {
    return graph.c.attribution.place(node);
  }

  colour(place: SourceLine | undefined): number {
    return place ? this.colourOf(place.file, place.line) : -1;
  }

  colourOf = (file: string, line: number): number => this.#colours.get(lineKey(file, line)) ?? -1;

  /**
   * The same line has its colour in every stage; neighbours among those of the last stage, which are what a kernel is
   * coloured by, get different ones. A line that left nothing there comes after them.
   */
  #assignColours(): void {
    const places = new Map<string, { file: number; line: number; isGone: number }>();
    const order = new Map(this.sources.map((source, i) => [source.file, i]));
    for (const [i, { attribution }] of this.capture.stages.entries())
      for (const [code, { file, line }] of attribution.places.entries())
        if (attribution.nodesAt(code).length)
          places.set(lineKey(file, line), {
            file: order.get(file) ?? 1e9,
            line,
            isGone: Number(i < this.capture.stages.length - 1),
          });
    const sorted = [...places].sort(([, a], [, b]) => a.isGone - b.isGone || a.file - b.file || a.line - b.line);
    for (const [i, [key]] of sorted.entries()) this.#colours.set(key, i % COLOURS);
  }
}
