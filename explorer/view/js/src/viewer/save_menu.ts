// The picture in sight as a file: SVG with its styles in it, or PNG drawn from that.

import { element } from "../core/dom";

const STYLES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-opacity",
  "stroke-dasharray",
  "stroke-linejoin",
  "paint-order",
  "opacity",
  "visibility",
  "display",
  "font-family",
  "font-size",
  "font-weight",
  "font-style",
  "text-anchor",
];
const MARGIN = 16;
const SCALE = 2; // of a PNG: sharp on a screen with small pixels

type Format = "svg" | "png";

/** A button with a menu of the two formats; `find` gives the picture that is shown, if one is. */
export class SaveMenu {
  readonly root: HTMLElement;
  readonly #button = element(
    "button",
    {
      type: "button",
      class: "tool",
      title: "save the picture",
      "aria-label": "save the picture",
      "aria-haspopup": "menu",
      "aria-expanded": "false",
    },
    "⤓",
  );
  readonly #menu = element("div.save-menu", { role: "menu", "aria-label": "save the picture as" });

  constructor(
    private readonly find: () => SVGSVGElement | null,
    private readonly name: () => string,
  ) {
    for (const format of ["svg", "png"] as const) {
      const item = element(
        "button",
        { type: "button", role: "menuitem", "data-format": format, tabindex: "-1" },
        format.toUpperCase(),
      );
      item.addEventListener("click", () => {
        this.#open(false);
        void this.#save(format);
      });
      this.#menu.append(item);
    }
    this.#menu.hidden = true;
    this.root = element("span.save", this.#button, this.#menu);
    this.#button.addEventListener("click", () => this.#open(this.#menu.hidden === true));
    this.root.addEventListener("keydown", (event) => this.#key(event));
    this.root.addEventListener("focusout", (event) => {
      if (!this.root.contains(event.relatedTarget as Node | null)) this.#open(false);
    });
  }

  /** Where nothing is drawn there is nothing to save. */
  update(): void {
    this.root.hidden = !this.find();
  }

  #open(isOpen: boolean): void {
    this.#menu.hidden = !isOpen;
    this.#button.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) (this.#menu.firstElementChild as HTMLElement).focus();
  }

  #key(event: KeyboardEvent): void {
    const items = [...this.#menu.children] as HTMLElement[];
    const at = items.indexOf(event.target as HTMLElement);
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape" && !this.#menu.hidden) {
      this.#open(false);
      this.#button.focus();
    } else if (step && at >= 0) items[(at + step + items.length) % items.length]!.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  async #save(format: Format): Promise<void> {
    const picture = this.find();
    if (!picture) return;
    const text = svgText(picture);
    const blob = format === "svg" ? new Blob([text], { type: "image/svg+xml" }) : await drawn(text);
    const link = element("a", { href: URL.createObjectURL(blob), download: `${this.name()}.${format}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }
}

/** A picture as it is in sight, as a document of its own: each look of its elements a class. */
export function svgText(picture: SVGSVGElement): string {
  const [x, y, width, height] = inSight(picture);
  const copy = picture.cloneNode(true) as SVGSVGElement;
  const classes = new Map<string, string>();
  const originals = picture.querySelectorAll<SVGElement>("*");
  copy.querySelectorAll<SVGElement>("*").forEach((node, i) => {
    const computed = getComputedStyle(originals[i]!);
    const look = STYLES.map((name) => `${name}:${computed.getPropertyValue(name)}`).join(";");
    if (!classes.has(look)) classes.set(look, `s${classes.size}`);
    for (const { name } of [...node.attributes])
      if (/^(data-|aria-|role$|tabindex$|style$)/.test(name)) node.removeAttribute(name);
    node.setAttribute("class", classes.get(look)!);
  });
  for (const { name } of [...copy.attributes]) copy.removeAttribute(name);
  for (const [name, value] of Object.entries({
    xmlns: "http://www.w3.org/2000/svg",
    width,
    height,
    viewBox: `${x} ${y} ${width} ${height}`,
  }))
    copy.setAttribute(name, String(value));
  const sheet = [...classes].map(([look, name]) => `.${name}{${look}}`).join("");
  const ground = document.createElementNS(copy.namespaceURI, "rect");
  for (const [name, value] of Object.entries({ x, y, width, height, fill: groundOf(picture) }))
    ground.setAttribute(name, String(value));
  const style = document.createElementNS(copy.namespaceURI, "style");
  style.textContent = sheet;
  copy.prepend(style, ground);
  return new XMLSerializer().serializeToString(copy);
}

/** What is drawn and not beyond the picture's edge, with a margin. */
function inSight(picture: SVGSVGElement): [x: number, y: number, width: number, height: number] {
  const view = picture.getBoundingClientRect();
  const box = picture.getBBox();
  const [left, top] = [Math.max(box.x - MARGIN, 0), Math.max(box.y - MARGIN, 0)];
  const [right, bottom] = [
    Math.min(box.x + box.width + MARGIN, view.width),
    Math.min(box.y + box.height + MARGIN, view.height),
  ];
  return [left, top, Math.max(right - left, 1), Math.max(bottom - top, 1)].map(Math.ceil) as [
    number,
    number,
    number,
    number,
  ];
}

function groundOf(picture: Element): string {
  for (let at: Element | null = picture; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (!/^rgba\(.*, 0\)$|^transparent$/.test(colour)) return colour;
  }
  return "white";
}

async function drawn(text: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = element("canvas", {
    width: Math.round(image.width * SCALE),
    height: Math.round(image.height * SCALE),
  });
  const context = canvas.getContext("2d")!;
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture could not be drawn")))),
  );
}
