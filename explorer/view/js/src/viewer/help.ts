// The keys, and what colours and marks mean.

import { element } from "../core/dom";
import { addSheet } from "../core/style";
import sheet from "./help.css";

addSheet(sheet);

type Row = [sign: string | Node, meaning: string];

const KEYS: [where: string, rows: [keys: string, meaning: string][]][] = [
  [
    "anywhere",
    [
      ["Ctrl K  /", "ask or find"],
      ["n  N", "the next of what was found, the one before"],
      ["f", "full screen, and back"],
      ["?", "this page"],
      ["Esc", "close what is open; choose nothing"],
      ["Tab", "to the next part; arrows go on inside it"],
    ],
  ],
  [
    "in the graph",
    [
      ["↑ ↓", "along the edges"],
      ["← →", "from box to box"],
      ["Enter", "open or close a box"],
      ["[ ]", "the repetition before, the next one"],
      ["i o", "all that it needs, all that needs it"],
      ["p p", "all paths between two boxes"],
      ["n N", "its neighbours, one step more or less"],
      ["c", "the critical path"],
      ["+ − 0", "zoom, or fit the window"],
    ],
  ],
];

const swatch = (kind: string): Node => element("i", { class: `swatch ${kind}` });

const MARKS: Row[] = [
  [swatch("k0"), "a source line: its kernels have this colour in source, graph and details"],
  [swatch("chosen"), "what is chosen"],
  [swatch("near"), "what it reads, or what reads it"],
  [swatch("pack"), "repeats, or steps that do little: drawn as one"],
  [swatch("cut"), "talks to other devices"],
  [swatch("share"), "its share of what the whole program takes"],
  ["▸ ▾", "opens and closes"],
  ["×23", "as often in the program, all alike unless its details say otherwise"],
  ["≈", "inferred from names and places, or from the pass that made it"],
  ["✖ ▲ ●", "a pitfall: error, warning, note"],
  ["→", "data flows along an edge; chosen, it says what type and how many bytes"],
];

export class Help {
  readonly root = element("dialog.help", { "aria-labelledby": "" });

  constructor(id: string) {
    const close = element("button", { type: "button", class: "tool" }, "close (Esc)");
    close.addEventListener("click", () => this.root.close());
    const title = element("h3", { id: `${id}-help` }, "Keys and marks");
    this.root.setAttribute("aria-labelledby", title.id);
    this.root.append(
      element("div.help-head", title, close),
      element(
        "div.help-columns",
        element("div", ...KEYS.flatMap(([where, rows]) => [element("h4", where), table(rows.map(keyed))])),
        element("div", element("h4", "marks"), table(MARKS)),
      ),
    );
    // Beside the sheet is the dialog itself.
    this.root.addEventListener("click", ({ target }) => target === this.root && this.root.close());
  }

  toggle(): void {
    if (this.root.open) this.root.close();
    else this.root.showModal();
  }
}

const keyed = ([keys, meaning]: [string, string]): Row => {
  const parts = keys.split(/ +/).map((key) => element("kbd", key));
  return [element("span", ...parts.flatMap((part) => [part, " "])), meaning];
};

const table = (rows: Row[]): Node =>
  element(
    "table",
    ...rows.map(([sign, meaning]) => element("tr", element("th", { scope: "row" }, sign), element("td", meaning))),
  );
