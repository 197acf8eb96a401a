// The ways to look at a stage: each a pane in the middle, made at first use.

import { number } from "../core/labels";
import type { Mode, Session } from "../core/session";
import type { GraphPane } from "../graph/graph_pane";
import { LinesPane } from "../lines/lines_pane";
import { MemoryPane } from "../memory/memory_pane";
import { PassesPane } from "../passes/passes_pane";
import { TablePane, TextPane } from "../text/text_pane";
import { WhyPane } from "../why/why_pane";

export interface Pane {
  readonly root: HTMLElement;
  /** Draw the current stage. */
  reset(): void | Promise<void>;
  /** Mark what is in focus, and what the pointer is over. */
  light(): void;
  /** Mark what the pointer is over alone, where `light` does much more. */
  hover?(): void;
  /** Bring what is in focus into sight. */
  scroll?(): void;
  dispose?(): void;
}

export interface PaneKind {
  mode: Mode;
  title: string;
  /** The only stage it is for; every one if not given. */
  stage?: string;
  /** Stands among the stages instead, before its own, with this count: it is a stage to the eye. */
  count?: (session: Session) => string;
  make(session: Session, reveal: (node: number) => void): Pane;
}

/** In the order of their buttons; the graph comes first and is made by the viewer, which moves it. */
export const paneKinds = (graph: GraphPane): PaneKind[] => [
  { mode: "graph", title: "Graph", make: () => graph },
  { mode: "text", title: "Text", make: (session) => new TextPane(session) },
  { mode: "table", title: "Table", make: (session) => new TablePane(session) },
  { mode: "lines", title: "Lines", make: (session) => new LinesPane(session) },
  { mode: "why", title: "Why", make: (session) => new WhyPane(session) },
  { mode: "memory", title: "Memory", stage: "hlo", make: (session) => new MemoryPane(session) },
  { mode: "passes", title: "passes", stage: "hlo", count: passCount, make: (session) => new PassesPane(session) },
];

/** How many changed something, of how many ran; nothing where they were not recorded. */
function passCount({ capture: { passes } }: Session): string {
  return passes ? `${number(passes.shown.length)} of ${number(passes.all.length)}` : "";
}
