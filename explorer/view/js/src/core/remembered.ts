// What a reader set up and finds again: in the browser where that is allowed, else until the page is closed.

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
