// The picture in sight as a file: SVG with its styles in it, or PNG drawn from that.

import { download, element, svg } from "../core/dom";
import type { Format } from "./save_menu";

const STYLES = (
  "fill fill-opacity stroke stroke-width stroke-opacity stroke-dasharray stroke-linejoin paint-order " +
  "opacity visibility display font-family font-size font-weight font-style text-anchor"
).split(" ");
const MARGIN = 16;
const SCALE = 2; // of a PNG: sharp on a screen with small pixels

export async function savePicture(picture: SVGSVGElement, format: Format, name: string): Promise<void> {
  const text = svgText(picture);
  const blob = format === "svg" ? new Blob([text], { type: "image/svg+xml" }) : await drawn(text);
  download(blob, `${name}.${format}`);
}

/** A picture as it is in sight, as a document of its own: each look of its elements a class. */
function svgText(picture: SVGSVGElement): string {
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
  const sheet = [...classes].map(([look, name]) => `.${name}{${look}}`).join("");
  const ground = svg("rect", { x, y, width, height, fill: groundOf(picture) });
  const size = { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `${x} ${y} ${width} ${height}` };
  return new XMLSerializer().serializeToString(svg("svg", size, svg("style", sheet), ground, ...copy.childNodes));
}

/** What is drawn and not beyond the picture's edge, with a margin. */
function inSight(picture: SVGSVGElement): [x: number, y: number, width: number, height: number] {
  const view = picture.getBoundingClientRect();
  const box = picture.getBBox();
  const [left, top] = [Math.max(box.x - MARGIN, 0), Math.max(box.y - MARGIN, 0)];
  const right = Math.min(box.x + box.width + MARGIN, view.width);
  const bottom = Math.min(box.y + box.height + MARGIN, view.height);
  const [width, height] = [Math.max(right - left, 1), Math.max(bottom - top, 1)];
  return [Math.ceil(left), Math.ceil(top), Math.ceil(width), Math.ceil(height)];
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
  const [width, height] = [Math.round(image.width * SCALE), Math.round(image.height * SCALE)];
  const canvas = element("canvas", { width, height });
  const context = canvas.getContext("2d")!;
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture could not be drawn")))),
  );
}
