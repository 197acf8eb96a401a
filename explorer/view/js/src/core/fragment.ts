// What outputs that are complete without a script have in common.

/** A strict page forbids a <style>, but not what a script makes of it. */
export function adoptStyle(host: HTMLElement): void {
  if (getComputedStyle(host).getPropertyValue("--xf-bg")) return;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(host.querySelector("style")!.textContent!);
  (host.getRootNode() as Document).adoptedStyleSheets.push(sheet);
}
