// Light or dark, as the page around is; it may change while we are shown.

import { whileInPage } from "./life";

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
