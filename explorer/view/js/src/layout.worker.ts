// Runs `layout` off the main thread: {id, input} comes, {id, result} goes.

import { layout, type LayoutInput, type LayoutResult } from "./layout";

export interface Request {
  id: number;
  input: LayoutInput;
}

export interface Reply {
  id: number;
  result: LayoutResult;
}

addEventListener("message", ({ data: { id, input } }: MessageEvent<Request>) => {
  const result = layout(input);
  const buffers = new Set([result.x, result.y, ...result.edges].map((array) => array.buffer as ArrayBuffer));
  postMessage({ id, result } satisfies Reply, { transfer: [...buffers] });
});
