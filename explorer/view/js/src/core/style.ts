// The viewer's style sheets: the core's, and each chunk's once it is loaded.

const texts: string[] = [];
const sheets: CSSStyleSheet[] = [];
// Not kept alive: an output that is gone leaves nothing behind.
const roots: WeakRef<DocumentOrShadowRoot>[] = [];

/** Add a sheet to every page that shows the viewer, now or later. */
export function addSheet(text: string): void {
  texts.push(text);
  for (const root of roots) adopt(root.deref());
}

/** Make the viewer's rules hold where an element is, in a shadow root too. */
export function style(host: Node): void {
  const root = host.getRootNode();
  for (const place of [document, ...(root instanceof ShadowRoot ? [root] : [])]) {
    if (roots.some((known) => known.deref() === place)) continue;
    roots.push(new WeakRef(place));
    adopt(place);
  }
}

/** Not a <style>: a strict page forbids those, and one in the head doesn't reach into a shadow root. */
function adopt(root: DocumentOrShadowRoot | undefined): void {
  for (const text of texts.slice(sheets.length)) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    sheets.push(sheet);
  }
  if (root) root.adoptedStyleSheets.push(...sheets.filter((sheet) => !root.adoptedStyleSheets.includes(sheet)));
}
