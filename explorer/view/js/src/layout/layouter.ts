// Lays graphs out in a worker, or on the main thread where there can't be one (no blob: URLs under a strict policy).

import work from "worker:./layout.worker.ts";
import type { LayoutInput, LayoutResult } from "./layout";
import type { Reply, Request } from "./layout.worker";

const REMEMBERED = 256;
const SMALL = 120; // boxes: laid out before the worker would have answered

type Job = { input: LayoutInput; result: Promise<LayoutResult> };

type Waiting = { input: LayoutInput; resolve(result: LayoutResult | Promise<LayoutResult>): void };

export class Layouter {
  readonly #jobs = new Map<number, Job>(); // by hash of the input, the oldest first
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #url = "";
  #requests = 0;
  #started = false;

  /** The worker, from the first graph on that is worth one. */
  #open(): Worker | undefined {
    if (this.#started) return this.#worker;
    this.#started = true;
    try {
      this.#url = URL.createObjectURL(new Blob([`(${work})(self)`], { type: "text/javascript" }));
      this.#worker = new Worker(this.#url);
      this.#worker.onmessage = ({ data: { id, result } }: MessageEvent<Reply>) => {
        this.#waiting.get(id)?.resolve(result);
        this.#waiting.delete(id);
      };
      this.#worker.onerror = (event) => {
        event.preventDefault();
        this.#giveUpWorker();
      };
    } catch {
      this.#giveUpWorker();
    }
    return this.#worker;
  }

  /** The layout of a graph; equal graphs get the same result object. Doesn't settle once disposed. */
  layout(input: LayoutInput): Promise<LayoutResult> {
    const key = hash(input);
    const job = this.#jobs.get(key);
    if (job && equal(job.input, input)) return job.result;
    const kept = { width: input.width.slice(), height: input.height.slice(), edges: input.edges.slice() };
    const result = this.#start(kept);
    this.#jobs.set(key, { input: kept, result });
    if (this.#jobs.size > REMEMBERED) this.#jobs.delete(this.#jobs.keys().next().value!);
    return result;
  }

  dispose(): void {
    this.#started = true;
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#waiting.clear();
    this.#jobs.clear();
    URL.revokeObjectURL(this.#url);
  }

  #start(input: LayoutInput): Promise<LayoutResult> {
    const worker = input.width.length > SMALL ? this.#open() : undefined;
    if (!worker) return Promise.resolve(input).then(here);
    return new Promise((resolve) => {
      const id = this.#requests++;
      this.#waiting.set(id, { input, resolve });
      worker.postMessage({ id, input } satisfies Request);
    });
  }

  /** From now on on the main thread, also what the worker still owes. */
  #giveUpWorker(): void {
    this.#worker?.terminate();
    this.#worker = undefined;
    for (const { input, resolve } of this.#waiting.values()) resolve(Promise.resolve(input).then(here));
    this.#waiting.clear();
  }
}

let lay: ((request: { data: Request }) => void) | undefined;
let laid: Reply;

/** A layout on this thread, by the worker's own function. */
function here(input: LayoutInput): LayoutResult {
  if (!lay) work({ addEventListener: (_, listener) => (lay = listener), postMessage: (reply) => (laid = reply) });
  lay!({ data: { id: 0, input } });
  return laid.result;
}

function hash({ width, height, edges }: LayoutInput): number {
  let value = 0x811c9dc5; // FNV-1a
  for (const array of [width, height, edges]) {
    const words = new Uint32Array(array.buffer, array.byteOffset, array.byteLength / 4);
    for (const word of words) value = Math.imul(value ^ word, 0x01000193);
    value = Math.imul(value ^ array.length, 0x01000193);
  }
  return value >>> 0;
}

function equal(a: LayoutInput, b: LayoutInput): boolean {
  const same = (p: ArrayLike<number>, q: ArrayLike<number>) =>
    p.length === q.length && Array.prototype.every.call(p, (value: number, i: number) => value === q[i]);
  return same(a.width, b.width) && same(a.height, b.height) && same(a.edges, b.edges);
}
