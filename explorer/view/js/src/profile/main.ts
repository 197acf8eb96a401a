// The profile's way in: `mount` puts it into an element, from the bytes that an output carries.

import type { Message } from "./data";
import sheets from "./sheets";
import { ProfileViewer } from "./viewer";

const sheet = new CSSStyleSheet();
sheet.replaceSync(sheets);

export async function mount(host: HTMLElement, bytes: Uint8Array, { id }: { id: string }): Promise<ProfileViewer> {
  const root = host.getRootNode();
  for (const place of [document, ...(root instanceof ShadowRoot ? [root] : [])])
    if (!place.adoptedStyleSheets.includes(sheet)) place.adoptedStyleSheets.push(sheet);
  const stream = new Blob([bytes as BlobPart]).stream().pipeThrough(new DecompressionStream("gzip"));
  const viewer = new ProfileViewer(JSON.parse(await new Response(stream).text()) as Message, id);
  host.replaceChildren(viewer.root);
  viewer.start();
  return viewer;
}
