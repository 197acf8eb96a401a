// The viewer's way in: `mount` puts it into an element, from the bytes of a capture.

import type { AnyWidget } from "@anywidget/types";

import type { Traits } from "../core/kernel_link";
import { captureOf, opened } from "../core/wire";
import { DiffViewer } from "./diff_viewer";
import sheets from "./sheets";
import { type Options, Viewer } from "./viewer";

/** Show a capture or a diff in an element; what is given back ends it. */
export async function mount(host: HTMLElement, wire: Uint8Array, options: Options): Promise<{ dispose(): void }> {
  addStyle(host);
  const { header, blobs } = await opened(wire);
  const replace = (wire: Uint8Array, shown: Pick<Options, "stage" | "mode">) => {
    viewer.dispose();
    void mount(host, wire, { ...options, ...shown }).then((next) => (shownNow = next));
  };
  const viewer =
    "diff" in header
      ? new DiffViewer(header.diff, blobs, options.id)
      : new Viewer(captureOf(header, blobs), { ...options, recorded: replace });
  let shownNow: { dispose(): void } = viewer;
  host.replaceChildren(viewer.root);
  await viewer.start();
  return { dispose: () => shownNow.dispose() };
}

// Not a <style>: a strict page forbids those, and one in the head doesn't reach into a shadow root.
const sheet = new CSSStyleSheet();
sheet.replaceSync(sheets);

function addStyle(host: HTMLElement): void {
  const root = host.getRootNode();
  for (const place of [document, ...(root instanceof ShadowRoot ? [root] : [])])
    if (!place.adoptedStyleSheets.includes(sheet)) place.adoptedStyleSheets.push(sheet);
}

/** The same bundle is the module of `Capture.widget()`: anywidget calls this for each view of it. */
export default {
  async render({ model, el }) {
    const wire = model.get("wire");
    const bytes = new Uint8Array(wire.buffer, wire.byteOffset, wire.byteLength);
    const viewer = await mount(el, bytes, { id: model.get("capture"), model });
    return () => viewer.dispose();
  },
} satisfies AnyWidget<Traits>;
