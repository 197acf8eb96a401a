// The keys, and what colours and marks mean.

import { button, element } from "../core/dom";
import { addSheet } from "../core/theme";
import sheet from "./help.css";

addSheet(sheet);

type Row = [sign: string | Node, meaning: string];

const KEYS: Record<string, Record<string, string>> = {
  anywhere: {
    "Ctrl K  /": "ask or find",
    "n  N": "next result, previous result",
    f: "full screen, and back",
    "?": "this page",
    Esc: "close the open part; clear the selection",
    Tab: "next part; arrow keys move inside a part",
  },
  "in the graph": {
    "↑ ↓": "along the edges",
    "← →": "from box to box",
    Enter: "open or close a box",
    "[ ]": "previous repetition, next repetition",
    "i o": "all inputs, all users",
    "p p": "all paths between two boxes",
    "n N": "neighbors, one step more or less",
    c: "the critical path",
    "+ − 0": "zoom, or fit the window",
  },
};

const swatch = (kind: string): Node => element("i", { class: `swatch ${kind}` });

const MARKS: Row[] = [
  [swatch("k0"), "a source line: its kernels have this color in source, graph and details"],
  [swatch("chosen"), "selected"],
  [swatch("near"), "an input or a user of the selection"],
  [swatch("pack"), "repeats, or steps that do little: drawn as one"],
  [swatch("cut"), "communicates with other devices"],
  [swatch("share"), "share of the whole program"],
  ["▸ ▾", "opens and closes"],
  ["×23", "number of repetitions, all alike unless the details say otherwise"],
  ["≈", "inferred from names and source locations, or from the compiler pass"],
  ["✖ ▲ ●", "a pitfall: error, warning, note"],
  ["→", "data flow; select an edge for its type and bytes"],
];

export class Help {
  readonly root = element("dialog.help", { "aria-labelledby": "" });

  constructor(id: string) {
    const close = button({ class: "tool" }, () => this.root.close(), "close (Esc)");
    const title = element("h3", { id: `${id}-help` }, "Keys and marks");
    this.root.setAttribute("aria-labelledby", title.id);
    const parts = Object.entries(KEYS).flatMap(([where, rows]) => [
      element("h4", where),
      table(Object.entries(rows).map(keyed)),
    ]);
    this.root.append(
      element("div.help-head", title, close),
      element("div.help-columns", element("div", ...parts), element("div", element("h4", "marks"), table(MARKS))),
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
  const parts = keys.split(/ +/).flatMap((key) => [element("kbd", key), " "]);
  return [element("span", ...parts), meaning];
};

const table = (rows: Row[]): Node =>
  element(
    "table",
    ...rows.map(([sign, meaning]) => element("tr", element("th", { scope: "row" }, sign), element("td", meaning))),
  );
