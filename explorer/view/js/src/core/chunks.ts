// The viewer's code beyond its core: a chunk for each pane, in the outputs that can show it. build.mjs turns
// `import("./x_pane")` into `load("x_pane")`, and what a chunk exports into what its maker returns.

import { type Answer, answered } from "./kernel_link";

type Run = (chunk: string, packed?: string) => Promise<unknown>;

const makers = new Map<string, () => object>();
const loaded = new Map<string, object>();
let run: Run | undefined;

/** Called by the text of a chunk, which is made at its first use. */
export function provide(name: string, make: () => object): void {
  makers.set(name, make);
}

export const has = (name: string): boolean => makers.has(name);

/** Called by the page's loader: what runs a chunk, as a kernel sends it or from another output. */
export function receive(runner: Run): void {
  run = runner;
}

/** A chunk's exports. What this output has not brought is in another one of the page, or the kernel sends it. */
export async function load(name: string): Promise<object> {
  if (!makers.has(name)) await run?.(name);
  if (!makers.has(name)) await requested(name);
  const make = makers.get(name);
  if (!make) throw new Error("The code of this pane was in an output that was cleared: run this cell again.");
  const chunk = loaded.get(name) ?? make();
  loaded.set(name, chunk);
  return chunk;
}

const PATIENCE = 10_000; // milliseconds that a busy kernel is waited for
const SHORTLY = 2_000; // within which a notebook that was opened again has its wire to a kernel that is still there

/** Ask every kernel that the page has a wire to; resolves when one has answered. */
async function requested(name: string): Promise<void> {
  if (!run) return;
  if (!window.explorerModels?.size)
    await new Promise((resolve) => {
      window.addEventListener("explorer-wire", resolve, { once: true });
      setTimeout(resolve, SHORTLY);
    });
  const models = [...(window.explorerModels?.values() ?? [])];
  if (!models.length) return;
  const answers = models.map((model) =>
    answered<Answer & { chunk?: string }>(
      model,
      { ask: "code", chunk: name },
      ({ chunk, code }) => chunk === name && !!code,
      PATIENCE,
    ),
  );
  // A kernel that is gone gives none.
  const code = await Promise.any(answers.map(async (answer) => (await answer).code ?? Promise.reject())).catch(
    () => "",
  );
  if (code) await run(name, code);
}
