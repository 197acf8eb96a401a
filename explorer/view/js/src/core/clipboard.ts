// What a view gives away: to the clipboard, where the page may write to it, and as a file.

import { element } from "./dom";

/** Copy a text; whether that was allowed. */
export async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // a page without the right to
  }
}

export function download(content: Blob, name: string): void {
  const link = element("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
