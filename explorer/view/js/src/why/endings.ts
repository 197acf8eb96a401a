// The equations that left no instruction of their own, by source line and by the pass that ended them.

import type { SourceLine } from "../core/attribution";
import { push } from "../core/buckets";
import type { Stage } from "../core/capture";
import { type Fates, NO_PASS } from "../core/fates";
import { number } from "../core/labels";
import type { Session } from "../core/session";

/** The fates of which one asks "why": other equations run, or are the calls around them. */
const KINDS = ["eliminated", "merged", "folded", "folded into", "moved", "rewritten", "split", "unknown"];

export interface Ending {
  node: number;
  kind: string;
  /** Of the pass; what isn't known comes after all passes. */
  step: number;
  place: SourceLine | undefined;
}

/** Those of the stage that is shown, else of the first one that has fates. */
export class Endings {
  readonly stage: Stage;
  readonly fates: Fates | undefined;
  readonly all: Ending[] = [];

  constructor({ capture, stage, lines }: Session) {
    this.stage = stage.fates ? stage : capture.stages[0]!;
    const { fates, graph } = this.stage;
    this.fates = fates;
    for (let node = 0; fates && node < graph.size; node++) {
      const kind = fates.kind(node);
      const step = fates.step(node);
      if (KINDS.includes(kind))
        this.all.push({ node, kind, step: step === NO_PASS ? 1e9 : step, place: lines.place(graph, node) });
    }
    const order = new Map(lines.sources.map(({ file }, i) => [file, i]));
    const at = ({ place }: Ending) => (place ? (order.get(place.file) ?? 1e4) * 1e6 + place.line : 1e12);
    // In the order of the source, then of the program; what has no line comes last.
    this.all.sort((a, b) => at(a) - at(b) || a.node - b.node);
  }

  /** By line of the source, or by pass in the order in which they ran. */
  groups(byPass: boolean): Ending[][] {
    const groups = new Map<string, Ending[]>();
    const all = byPass ? [...this.all].sort((a, b) => a.step - b.step) : this.all;
    for (const ending of all) {
      const key = byPass ? String(ending.step) : `${ending.place?.line} ${ending.place?.file}`;
      push(groups, key, ending);
    }
    return [...groups.values()];
  }
}

/** `9 eliminated, 2 rewritten`. */
export const counted = (endings: Ending[]): string =>
  KINDS.map((kind): [string, number] => [kind, endings.filter((ending) => ending.kind === kind).length])
    .filter(([, n]) => n)
    .map(([kind, n]) => `${number(n)} ${kind}`)
    .join(", ");
