// The viewer's code beyond its core: a chunk for each pane, in the outputs that can show it. build.mjs turns
// `import("./x_pane")` into `load("x_pane")`, and what a chunk exports into what its maker returns.

type Run = (packed: string, chunk: string) => Promise<unknown>;

const makers = new Map<string, () => object>();
const loaded = new Map<string, object>();
let run: Run | undefined;

/** Called by the text of a chunk, which is made at its first use. */
export function provide(name: string, make: () => object): void {
  makers.set(name, make);
}

export const has = (name: string): boolean => makers.has(name);

/** Called by the page's loader: what runs the text of a chunk that a kernel sends. */
export function receive(runner: Run): void {
  run = runner;
}

/** A chunk's exports. One that no output has brought (passes recorded after the picture was made) the kernel sends. */
export async function load(name: string): Promise<object> {
  if (!makers.has(name)) await requested(name);
  const make = makers.get(name);
  if (!make) throw new Error("The code of this pane is not in this output: run the cell again.");
  const chunk = loaded.get(name) ?? make();
  loaded.set(name, chunk);
  return chunk;
}

const PATIENCE = 10_000; // milliseconds that a busy kernel is waited for

/** Ask every kernel that the page has a wire to; resolves when one has answered. */
async function requested(name: string): Promise<void> {
  const models = [...(window.explorerModels?.values() ?? [])];
  if (!run || !models.length) return;
  const answer = new Promise<string>((resolve) => {
    for (const model of models) {
      const listen = ({ chunk, code }: { chunk?: string; code?: string }) => {
        if (chunk !== name || !code) return;
        model.off("msg:custom", listen);
        resolve(code);
      };
      model.on("msg:custom", listen);
      try {
        model.send({ ask: "code", chunk: name });
      } catch {} // its kernel is gone
    }
    setTimeout(() => resolve(""), PATIENCE);
  });
  const code = await answer;
  if (code) await run(code, name);
}
