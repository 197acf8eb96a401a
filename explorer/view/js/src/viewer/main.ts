// The viewer's way in, and its core: `mount` puts a capture or a diff into an element, from its bytes.

import type { AnyWidget } from "@anywidget/types";

import type { Traits } from "../core/kernel_link";
import { addSheet, style } from "../core/style";
import tokens from "../core/tokens.css";
import { captureOf, opened } from "../core/wire";
import graphEdges from "../graph/edges.css";
import graph from "../graph/graph.css";
import rows from "../text/text.css";
import bar from "./bar.css";
import panes from "./panes.css";
import type { Options } from "./viewer";
import frame from "./viewer.css";

export { has, load, provide, receive } from "../core/chunks";

for (const sheet of [tokens, frame, bar, panes, graph, graphEdges, rows]) addSheet(sheet);

/** Show a capture or a diff in an element; what is given back ends it. */
export async function mount(host: HTMLElement, wire: Uint8Array, options: Options): Promise<{ dispose(): void }> {
  style(host);
  const { header, blobs } = await opened(wire);
  const replace = (wire: Uint8Array, shown: Pick<Options, "stage" | "mode">) => {
    viewer.dispose();
    void mount(host, wire, { ...options, ...shown }).then((next) => (shownNow = next));
  };
  const make = async () => {
    if ("diff" in header) {
      const { DiffViewer } = await import("./diff_viewer");
      return new DiffViewer(header.diff, blobs, options.id);
    }
    const { Viewer } = await import("./viewer");
    return new Viewer(captureOf(header, blobs), { ...options, recorded: replace });
  };
  const viewer = await make();
  let shownNow: { dispose(): void } = viewer;
  host.replaceChildren(viewer.root);
  await viewer.start();
  return { dispose: () => shownNow.dispose() };
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
