// Runs `layout` off the main thread: {id, input} comes, {id, result} goes.

import { type LayoutInput, type LayoutResult, layout } from "./layout";

export type Request = { id: number; input: LayoutInput };

export type Reply = { id: number; result: LayoutResult };

/** What a worker has, and what stands for it on the main thread. */
export interface Port {
  addEventListener(type: "message", listener: (event: { data: Request }) => void): void;
  postMessage(reply: Reply, options: { transfer: ArrayBuffer[] }): void;
}

declare const self: Port;

self.addEventListener("message", ({ data: { id, input } }) => {
  const result = layout(input);
  const buffers = new Set([result.x, result.y, ...result.edges].map((array) => array.buffer as ArrayBuffer));
  self.postMessage({ id, result } satisfies Reply, { transfer: [...buffers] });
});
