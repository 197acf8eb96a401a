// From one picture of the graph to the next: what is in both moves to its new place, what is new fades in.

const MILLISECONDS = 450;

export type Places = Map<string, DOMRect>;

/** Where each box is on the screen; boxes of one title are told apart by their order. */
export function placesOf(root: HTMLElement): Places {
  return new Map([...boxes(root)].map(([key, box]) => [key, box.getBoundingClientRect()]));
}

/** Let the boxes of a picture come from where the same ones were in the picture before. */
export function morph(root: HTMLElement, before: Places): void {
  if (!before.size || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const [key, box] of boxes(root)) {
    const was = before.get(key);
    if (!was) {
      box.animate({ opacity: [0, 1] }, { duration: MILLISECONDS, easing: "ease-in" });
      continue;
    }
    const is = box.getBoundingClientRect();
    const scale = box.getScreenCTM()?.a || 1;
    const from = `translate(${(was.x - is.x) / scale}px, ${(was.y - is.y) / scale}px)`;
    // Added to the place that the box has as an attribute.
    const how = { duration: MILLISECONDS, easing: "ease-in-out", composite: "add" } as const;
    box.animate({ transform: [from, "translate(0px, 0px)"] }, how);
  }
}

function* boxes(root: HTMLElement): Generator<[string, SVGGElement]> {
  const count = new Map<string, number>();
  for (const box of root.querySelectorAll<SVGGElement>("svg.canvas g.box")) {
    const title = box.querySelector("text")?.textContent ?? "";
    const number = count.get(title) ?? 0;
    count.set(title, number + 1);
    yield [`${title} ${number}`, box];
  }
}
