// One Tab stop for many: tabs, tools, the facts of a sentence. Arrows, Home and End go from one to the next.

const STEPS: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/**
 * Let the keyboard go through what of `root` fits a selector. `chosen` is called with what the arrows come to.
 *
 * What is given back makes an element the one that Tab comes to; without one it stays, or is the first.
 */
export function rove(
  root: HTMLElement,
  selector: string,
  chosen: (item: HTMLElement) => void = () => {},
): (item?: HTMLElement) => void {
  const all = () => [...root.querySelectorAll<HTMLElement>(selector)];
  const reached = () => all().filter((item) => item.getClientRects().length && !item.matches(":disabled"));
  const mark = (item?: HTMLElement) => {
    const items = all();
    const at = item ?? items.find((other) => other.tabIndex === 0 && !other.hidden) ?? items[0];
    for (const other of items) other.tabIndex = other === at ? 0 : -1;
  };
  root.addEventListener("focusin", ({ target }) => {
    const item = (target as Element).closest<HTMLElement>(selector);
    if (item) mark(item);
  });
  root.addEventListener("keydown", (event) => {
    const item = (event.target as Element).closest<HTMLElement>(selector);
    const items = reached();
    const at = item ? items.indexOf(item) : -1;
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = STEPS[event.key];
    const ends = { Home: items[0], End: items.at(-1) };
    const to = step === undefined ? ends[event.key as "Home"] : items.at((at + step) % items.length);
    if (!to) return;
    event.preventDefault();
    event.stopPropagation();
    to.focus();
    chosen(to);
  });
  mark();
  return mark;
}
