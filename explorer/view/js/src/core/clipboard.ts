// The clipboard, where the page may write to it.

/** Copy a text; whether that was allowed. */
export async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // a page without the right to
  }
}
