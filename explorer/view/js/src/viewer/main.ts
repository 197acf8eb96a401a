// The viewer's way in, and its core: `mount` puts a capture or a diff into an element, from its bytes.

import type { AnyWidget } from "@anywidget/types";
import { type Capture, captureOf, opened } from "../core/capture";
import type { Traits } from "../core/kernel_link";
import { addSheet, style } from "../core/theme";
import tokens from "../core/tokens.css";
import graph from "../graph/graph.css";
import { COLOURS } from "../source/source_lines";
import rows from "../text/text.css";
import type { WhatIf } from "../whatif/what_if";
import shared from "./shared.css";
import type { Options, Viewer } from "./viewer";
import frame from "./viewer.css";

export { has, load, provide, receive } from "../core/chunks";

// The palette's classes: what has one of a source line's colours has it as `--c`.
const palette = Array.from({ length: COLOURS }, (_, k) => `.explorer .k${k}{--c:var(--k${k})}`).join("");

for (const sheet of [tokens, palette, shared, frame, graph, rows]) addSheet(sheet);

/** Show a capture or a diff in an element; what is given back ends it. */
export async function mount(host: HTMLElement, wire: Uint8Array, options: Options): Promise<{ dispose(): void }> {
  style(host);
  const { header, blobs } = await opened(wire);
  if ("diff" in header) {
    const { DiffViewer } = await import("./diff_viewer");
    const viewer = new DiffViewer(header.diff, blobs, options.id);
    host.replaceChildren(viewer.root);
    await viewer.start();
    return viewer;
  }
  const captures = new Captures(host, wire, options);
  await captures.show(captureOf(header, blobs), {});
  return captures;
}

/** What is shown in one place: a capture, as it is once its passes are recorded, and what its switches make of it. */
class Captures {
  #viewer: Viewer | undefined;
  #whatIf: WhatIf | undefined;

  constructor(
    private readonly host: HTMLElement,
    private wire: Uint8Array,
    private readonly options: Options,
  ) {}

  async show(capture: Capture, more: Partial<Options>): Promise<void> {
    const { Viewer } = await import("./viewer");
    const next = new Viewer(capture, {
      ...this.options,
      recorded: (wire, shown) => void this.#read((this.wire = wire), shown),
      whatIf: () => this.#switches(capture),
      ...more,
    });
    const before = this.#viewer;
    const places = before && this.#whatIf && placesOf(before.root);
    if (before && this.#whatIf && before.root.contains(this.#whatIf.root)) next.holdWhatIf(this.#whatIf.root);
    before?.dispose();
    this.#viewer = next;
    this.host.replaceChildren(next.root);
    await next.start();
    if (places) morph(next.root, places);
  }

  dispose(): void {
    this.#whatIf?.dispose();
    this.#viewer?.dispose();
  }

  async #read(wire: Uint8Array, more: Partial<Options>): Promise<void> {
    const { header, blobs } = await opened(wire);
    if (!("diff" in header)) await this.show(captureOf(header, blobs), more);
  }

  async #switches({ header }: Capture): Promise<HTMLElement> {
    const { WhatIf } = await import("../whatif/what_if");
    const { id, model } = this.options;
    // What they make of it is no capture that Python knows: what is selected there stays in the page.
    const other = { id: `${id} what if`, model: undefined, isTrial: true };
    this.#whatIf ??= new WhatIf(id, model, header.function, header.signature, (wire) => {
      void this.#read(wire ?? this.wire, { ...this.#viewer?.shown, ...(wire && other) });
    });
    return this.#whatIf.root;
  }
}

/** What the module of `Capture.widget()` exports: anywidget calls this for each view of it. */
export const widget: AnyWidget<Traits> = {
  async render({ model, el }) {
    const wire = model.get("wire");
    const bytes = new Uint8Array(wire.buffer, wire.byteOffset, wire.byteLength);
    const viewer = await mount(el, bytes, { id: model.get("capture"), model });
    return () => viewer.dispose();
  },
};

const MILLISECONDS = 450;

export type Places = Map<string, DOMRect>;

/** Where each box is on the screen; boxes of one title are told apart by their order. */
export function placesOf(root: HTMLElement): Places {
  return new Map([...boxes(root)].map(([key, box]) => [key, box.getBoundingClientRect()]));
}

/** Let the boxes of a picture come from where the same ones were in the picture before. */
export function morph(root: HTMLElement, before: Places): void {
  if (!before.size || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const [key, box] of boxes(root)) {
    const was = before.get(key);
    if (!was) {
      box.animate({ opacity: [0, 1] }, { duration: MILLISECONDS, easing: "ease-in" });
      continue;
    }
    const is = box.getBoundingClientRect();
    const scale = box.getScreenCTM()?.a || 1;
    const from = `translate(${(was.x - is.x) / scale}px, ${(was.y - is.y) / scale}px)`;
    // Added to the place that the box has as an attribute.
    const how = { duration: MILLISECONDS, easing: "ease-in-out", composite: "add" } as const;
    box.animate({ transform: [from, "translate(0px, 0px)"] }, how);
  }
}

function* boxes(root: HTMLElement): Generator<[string, SVGGElement]> {
  const count = new Map<string, number>();
  for (const box of root.querySelectorAll<SVGGElement>("svg.canvas g.box")) {
    const title = box.querySelector("text")?.textContent ?? "";
    const number = count.get(title) ?? 0;
    count.set(title, number + 1);
    yield [`${title} ${number}`, box];
  }
}
