// The viewer's way in: `mount` puts it into an element, from the bytes of a capture.

import type { AnyWidget } from "@anywidget/types";

import type { Traits } from "../core/kernel_link";
import { captureOf, opened } from "../core/wire";
import { DiffViewer } from "./diff_viewer";
import sheets from "./sheets";
import { type Options, Viewer } from "./viewer";

export async function mount(host: HTMLElement, wire: Uint8Array, options: Options): Promise<Viewer | DiffViewer> {
  addStyle(host);
  const { header, blobs } = await opened(wire);
  const viewer =
    "diff" in header ? new DiffViewer(header.diff, blobs, options.id) : new Viewer(captureOf(header, blobs), options);
  host.replaceChildren(viewer.root);
  await viewer.start();
  return viewer;
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
