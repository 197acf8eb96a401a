// A small picture of the whole scene with a frame around what is in sight: drag the frame to move there.

import { element } from "../core/dom";
import { isGroup } from "../core/item";
import { THEMED } from "../core/theme";
import type { GraphCanvas } from "./canvas";
import type { Scene } from "./scene";

const WIDTH = 148;
const HEIGHT = 96;
const STEP = 40; // pixels that an arrow key moves the view by

export class Minimap {
  readonly root = element("div", {
    class: "minimap",
    tabindex: "0",
    role: "img",
    "aria-label": "whole picture; arrow keys move the view",
  });
  readonly #picture = element("canvas");
  readonly #frame = element("i");
  #scale = 1;
  #drawn?: Scene;

  constructor(
    private readonly canvas: GraphCanvas,
    private readonly move: () => void,
  ) {
    this.root.append(this.#picture, this.#frame);
    this.#picture.addEventListener(THEMED, () => this.#drawn && this.#paint(this.#drawn));
    let held = false;
    this.root.addEventListener("pointerdown", (event) => {
      held = true;
      this.root.setPointerCapture(event.pointerId);
      this.#lookAt(event);
    });
    this.root.addEventListener("pointermove", (event) => held && this.#lookAt(event));
    for (const end of ["pointerup", "pointercancel"] as const) this.root.addEventListener(end, () => (held = false));
    this.root.addEventListener("keydown", (event) => {
      const [x, y] = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [
        0, 0,
      ];
      if (!x && !y) return;
      event.preventDefault();
      event.stopPropagation();
      this.canvas.view.x += x! * STEP;
      this.canvas.view.y += y! * STEP;
      this.move();
    });
  }

  #lookAt(event: PointerEvent): void {
    const { left, top } = this.root.getBoundingClientRect();
    const { area, view } = this.canvas;
    view.x = area.width / 2 - ((event.clientX - left) / this.#scale) * view.scale;
    view.y = area.height / 2 - ((event.clientY - top) / this.#scale) * view.scale;
    this.move();
  }

  /** Move the frame to what is in sight; hidden where everything is. The picture is drawn once for each scene. */
  draw(): void {
    const { scene, view, area } = this.canvas;
    const fits =
      view.x >= -1 &&
      view.y >= -1 &&
      view.x + scene.width * view.scale <= area.width + 1 &&
      view.y + scene.height * view.scale <= area.height + 1;
    this.root.hidden = fits || area.width < 3 * WIDTH || !scene.boxes.length;
    if (this.root.hidden) return;
    if (this.#drawn !== scene) this.#paint(scene);
    const scale = this.#scale / view.scale;
    const { style } = this.#frame;
    style.transform = `translate(${-view.x * scale}px, ${-view.y * scale}px)`;
    style.width = `${area.width * scale}px`;
    style.height = `${area.height * scale}px`;
  }

  #paint(scene: Scene): void {
    this.#drawn = scene;
    const scale = (this.#scale = Math.min(WIDTH / scene.width, HEIGHT / scene.height));
    const [width, height] = [scene.width * scale, scene.height * scale];
    for (const { style } of [this.root, this.#picture]) [style.width, style.height] = [`${width}px`, `${height}px`];
    [this.#picture.width, this.#picture.height] = [Math.ceil(2 * width), Math.ceil(2 * height)];
    const context = this.#picture.getContext("2d");
    if (!context) return;
    const colours = getComputedStyle(this.root);
    const [edge, line] = ["--edge", "--line"].map((name) => colours.getPropertyValue(name));
    context.setTransform(2 * scale, 0, 0, 2 * scale, 0, 0);
    context.lineWidth = 1 / scale;
    context.strokeStyle = edge!;
    for (const { item, x, y, width: w, height: h, open } of scene.boxes) {
      context.fillStyle = isGroup(item) ? line! : edge!;
      if (open) context.strokeRect(x, y, w, h);
      else context.fillRect(x, y, Math.max(w, 2 / scale), Math.max(h, 2 / scale));
    }
  }
}
