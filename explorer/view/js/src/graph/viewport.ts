// Where one looks in the graph's picture: each function sets the canvas's view, and paints.

import type { GraphCanvas } from "./canvas";
import type { Box, Scene } from "./scene";

/** The least scale at which the smallest text, of 12 pixels, has 11: nothing unasked goes below. */
export const READABLE = 11 / 12;
export const TOP = 32; // pixels that the tools take
const NEAR_START = 100; // pixels that a picture isn't moved by: its start tells more
const EDGE = 14; // pixels left around what is brought into sight
const SMALLEST = 0.02;
const LARGEST = 2.5;

/** The scale at which a whole scene is in sight, below the tools. */
export function wholeScale({ area }: GraphCanvas, scene: Scene): number {
  return Math.min(area.width / scene.width, (area.height - TOP) / scene.height, 1);
}

/** The whole picture if it can be read, else what is around one box at a readable size. */
export function fitReadable(canvas: GraphCanvas, box: Box | undefined): void {
  const { scene, area } = canvas;
  const whole = wholeScale(canvas, scene);
  if (whole >= READABLE) {
    lookFrom(canvas, whole);
    return;
  }
  const scale = Math.min(Math.max(area.width / scene.width, READABLE), 1);
  const [width, height] = [scene.width * scale, scene.height * scale];
  // In the middle where it fits, else with the box in sight and no more empty space beside than needs be.
  const at = (middle: number, size: number, room: number, start: number) => {
    if (size <= room) return start + (room - size) / 2;
    const moved = Math.min(Math.max(room / 2 - middle * scale, room - size), 0);
    return start + (moved > -NEAR_START && middle * scale < room - NEAR_START ? 0 : moved);
  };
  const [x, y] = box ? [box.x + box.width / 2, box.y + box.height / 2] : [scene.width / 2, 0];
  canvas.view = { scale, x: at(x, width, area.width, 0), y: at(y, height, area.height - TOP, TOP) };
  canvas.paint();
}

export function fitWhole(canvas: GraphCanvas): void {
  lookFrom(canvas, Math.max(wholeScale(canvas, canvas.scene), SMALLEST));
}

/** The scene in the middle, or its top below the tools. */
function lookFrom(canvas: GraphCanvas, scale: number): void {
  const { scene, area } = canvas;
  const left = area.height - TOP - scene.height * scale;
  canvas.view = { scale, x: (area.width - scene.width * scale) / 2, y: TOP + Math.max(left / 2, 0) };
  canvas.paint();
}

export function centre(canvas: GraphCanvas, box: Box): void {
  const { width, height } = canvas.area;
  const scale = Math.max(canvas.view.scale, READABLE);
  canvas.view = {
    scale,
    x: width / 2 - (box.x + box.width / 2) * scale,
    y: height / 2 - (box.y + Math.min(box.height, height / scale) / 2) * scale,
  };
  canvas.paint();
}

/** Move a box that was opened into sight, smaller where that shows it whole; its header at least. */
export function bringIntoSight(canvas: GraphCanvas, box: Box): void {
  const { view } = canvas;
  const { width, height } = canvas.area;
  const room = Math.min((width - 2 * EDGE) / box.width, (height - TOP - EDGE) / box.height);
  const scale = Math.min(view.scale, Math.max(room, READABLE));
  const [left, top] = [view.x + box.x * view.scale, view.y + box.y * view.scale];
  const within = (at: number, size: number, all: number, start: number) =>
    Math.max(Math.min(at, all - EDGE - size), start);
  canvas.view = {
    scale,
    x: within(left, box.width * scale, width, EDGE) - box.x * scale,
    y: within(top, box.height * scale, height, TOP) - box.y * scale,
  };
  canvas.paint();
}

/** Zoom around a point of the pane, in pixels; by default its middle. */
export function zoom(canvas: GraphCanvas, factor: number, x = canvas.area.width / 2, y = canvas.area.height / 2): void {
  const { view } = canvas;
  const scale = Math.min(Math.max(view.scale * factor, SMALLEST), LARGEST);
  const ratio = scale / view.scale;
  canvas.view = { scale, x: x - (x - view.x) * ratio, y: y - (y - view.y) * ratio };
  canvas.paint();
}
