// The ways to look at a stage: each a pane in the middle, made at first use. All but the graph are chunks of their own:
// explorer/view/capture/html.py says which a capture brings.

import type { Capture } from "../core/capture";
import { element } from "../core/dom";
import { number } from "../core/labels";
import type { Mode, Session } from "../core/session";
import type { GraphPane } from "../graph/graph_pane";

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
  /** It stands behind its own. */
  isAfter?: boolean;
  make(session: Session): Pane | Promise<Pane>;
}

/** In the order of their buttons; the graph comes first and is made by the viewer, which moves it. */
export const paneKinds = (graph: GraphPane, capture: Capture): PaneKind[] => {
  const kinds: PaneKind[] = [
    { mode: "graph", title: "Graph", make: () => graph },
    { mode: "text", title: "Text", make: async (of) => new (await import("../text/text_pane")).TextPane(of) },
    { mode: "table", title: "Table", make: async (of) => new (await import("../text/text_pane")).TablePane(of) },
    { mode: "lines", title: "Lines", make: async (of) => new (await import("../lines/lines_pane")).LinesPane(of) },
    { mode: "why", title: "Why", make: async (of) => new (await import("../why/why_pane")).WhyPane(of) },
    { mode: "memory", title: "Memory", stage: "hlo", make: memory },
    { mode: "passes", title: "passes", stage: "hlo", count: passCount, make: passes },
    { mode: "code", title: "machine code", stage: "hlo", count: codeCount, isAfter: true, make: code },
  ];
  // Of a module from a file nobody knows what it was lowered from.
  return kinds.filter(({ mode }) => mode !== "why" || capture.stages.length > 1);
};

const memory = async (session: Session) => new (await import("../memory/memory_pane")).MemoryPane(session);

/** How many changed something, of how many ran; nothing where they were not recorded. */
function passCount({ capture: { passes } }: Session): string {
  return passes ? `${number(passes.shown.length)} of ${number(passes.all.length)}` : "";
}

function codeCount({ capture: { machineCode } }: Session): string {
  return machineCode ? number(machineCode.header.rows.length) : "";
}

/** A pane, or one line of why there is none: its code is not in this output, say, and no kernel answers. */
export async function makePane(kind: PaneKind, session: Session): Promise<Pane> {
  try {
    return await kind.make(session);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { root: element("div.explorer-missing", element("p.empty", why)), reset() {}, light() {} };
  }
}

async function passes(session: Session): Promise<Pane> {
  const { passes } = session.capture;
  if (!passes) return unrecorded();
  const { PassesPane } = await import("../passes/passes_pane");
  return new PassesPane(session, passes);
}

async function code(session: Session): Promise<Pane> {
  const { machineCode } = session.capture;
  if (!machineCode) return noCode();
  const { MachineCodePane } = await import("../machine_code/machine_code_pane");
  return new MachineCodePane(session, machineCode);
}

export const unrecorded = () =>
  missing(
    "The compiler's passes are not in this capture. explore() keeps them, " +
      "except for a program whose passes are too large, or with record=False.",
    "record the passes",
    " or %explore --passes f(x),",
    "passes",
  );

export const noCode = () =>
  missing(
    "The code of the kernels, below HLO, is not in this capture: that takes one more compilation.",
    "read the machine code",
    "",
    "machine_code",
  );

function missing(why: string, button: string, magic: string, attribute: string) {
  const text = `To have it here: press “${button}” under this pane while the kernel runs,${magic} or look at `;
  const read = element("code", `capture.${attribute}`);
  const how = element("p", text, read, " once before the capture is shown or saved.");
  const root = element("div.explorer-passes", element("div.empty", element("p", why), how));
  return { root, reset() {}, light() {} };
}
