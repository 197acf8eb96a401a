// The viewer's way in: `mount` puts it into an element, from the bytes of a capture.

import css from "./style.css";
import type { Model } from "./live";
import { type Options, Viewer } from "./viewer";
import { decode } from "./wire";

export async function mount(host: HTMLElement, wire: Uint8Array, options: Options): Promise<Viewer> {
  addStyle();
  const viewer = new Viewer(await decode(wire), options);
  host.replaceChildren(viewer.root);
  await viewer.start();
  return viewer;
}

function addStyle(): void {
  if (document.getElementById("explorer-style")) return;
  const style = document.createElement("style");
  style.id = "explorer-style";
  style.textContent = css;
  document.head.append(style);
}

/** The same bundle is the module of `Capture.widget()`: anywidget calls this for each view of it. */
export default {
  async render({ model, el }: { model: Model; el: HTMLElement }): Promise<() => void> {
    const wire = model.get("wire") as DataView;
    const bytes = new Uint8Array(wire.buffer, wire.byteOffset, wire.byteLength);
    const viewer = await mount(el, bytes, { id: String(model.get("capture")), model });
    return () => viewer.dispose();
  },
};
