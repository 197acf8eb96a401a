// What a view has from the page that it is in: its theme, its style sheets, and what a reader set up.
//
// A notebook takes an output out of the page when the cell runs again, and when it scrolls away, and tells nobody: what
// the page or a kernel's model would still call, it would keep alive.

/** What a canvas hears when the theme has changed: no style sheet changes what was drawn on it. */
export const THEMED = "themed";

/** The host's theme, or else the system's: JupyterLab and Notebook, VS Code, Colab, plain pages. */
function isDark(): boolean {
  const { dataset, classList } = document.body;
  if (dataset.jpThemeLight !== undefined) return dataset.jpThemeLight === "false";
  if (dataset.vscodeThemeKind !== undefined) return /dark|high-contrast$/.test(dataset.vscodeThemeKind);
  const root = document.documentElement;
  if (root.getAttribute("theme") !== null) return root.getAttribute("theme") === "dark";
  if (classList.contains("dark") || root.classList.contains("dark")) return true;
  if (classList.contains("light") || root.classList.contains("light")) return false;
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Keep an element's class `dark` as the page's theme is, while it is in the page; returns what ends it. */
export function followTheme(root: HTMLElement): () => void {
  return whileInPage(root, () => {
    const apply = () => {
      if (root.classList.contains("dark") === isDark()) return;
      root.classList.toggle("dark");
      // JupyterLab hides the page while it changes: what has no size yet can't be drawn.
      requestAnimationFrame(() => {
        for (const canvas of root.querySelectorAll("canvas")) canvas.dispatchEvent(new Event(THEMED));
      });
    };
    apply();
    const observer = new MutationObserver(apply);
    const attributeFilter = ["class", "theme", "data-jp-theme-light", "data-vscode-theme-kind"];
    for (const watched of [document.body, document.documentElement]) observer.observe(watched, { attributeFilter });
    const query = matchMedia("(prefers-color-scheme: dark)");
    query.addEventListener("change", apply);
    return () => {
      observer.disconnect();
      query.removeEventListener("change", apply);
    };
  });
}

const NAME = "explorer-life";

class Life extends HTMLElement {
  enter?: () => () => void;
  #leave?: (() => void) | undefined;

  connectedCallback(): void {
    this.#leave ??= this.enter?.();
  }

  disconnectedCallback(): void {
    this.#leave?.();
    this.#leave = undefined;
  }
}

/** Do `enter` whenever the element comes into a page, and what that gives when it leaves it; returns what ends this. */
export function whileInPage(root: HTMLElement, enter: () => () => void): () => void {
  // Another view of the page may have defined it, with its own class.
  if (!customElements.get(NAME)) customElements.define(NAME, Life);
  const life = document.createElement(NAME) as Life;
  life.hidden = true;
  life.enter = enter;
  root.append(life);
  return () => life.remove();
}

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

const kept = new Map<string, string>();

/** A number that was remembered under a name and lies between two bounds. */
export function recalled(name: string, least: number, most: number): number | undefined {
  let text = kept.get(name);
  try {
    text = localStorage.getItem(`explorer.${name}`) ?? text;
  } catch {
    // A sandboxed output has no storage.
  }
  const value = Number(text);
  return text && value >= least && value <= most ? value : undefined;
}

export function remember(name: string, value: number | undefined): void {
  if (value === undefined) kept.delete(name);
  else kept.set(name, String(value));
  try {
    if (value === undefined) localStorage.removeItem(`explorer.${name}`);
    else localStorage.setItem(`explorer.${name}`, String(value));
  } catch {
    // A sandboxed output has no storage.
  }
}
