// The wire to Python, where a kernel is alive: explorer/view/live.py registers a model for each capture it shows.

export interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, callback: () => void): void;
  off(event: string, callback: () => void): void;
}

interface Rows {
  stage: string;
  nodes: number[];
}

/** What Python wants to be seen; see `View._message` in explorer/view/steer.py. */
export interface Shown {
  stage?: string;
  highlight?: Rows | null;
  filter?: Rows | null;
  /** A column of the view's menu, or numbers of Python's own. */
  colour?: ({ by: string } & Partial<Rows & { values: (number | null)[] }>) | null;
}

declare global {
  interface Window {
    explorerModels?: Map<string, Model>;
  }
}

/** Tell Python what is selected; without a kernel there is nobody to tell, and nothing is lost. */
export function tellSelection(id: string, model: Model | undefined, stage: string, nodes: Iterable<number>): void {
  const wire = model ?? window.explorerModels?.get(id);
  if (!wire) return;
  try {
    wire.set("selected", { stage, nodes: [...nodes] });
    wire.save_changes();
  } catch {
    window.explorerModels?.delete(id); // its kernel is gone
  }
}

/** Show what Python sets, now and later, only what changed; gives what ends it. The wire may come after the view. */
export function followPython(id: string, model: Model | undefined, show: (changed: Shown) => void): () => void {
  let wire: Model | undefined;
  let last: Shown = {};
  const take = () => {
    const shown = (wire?.get("shown") ?? {}) as Shown;
    const keys = ["stage", "highlight", "filter", "colour"] as const;
    const changed = keys.filter((key) => JSON.stringify(shown[key] ?? null) !== JSON.stringify(last[key] ?? null));
    last = shown;
    if (changed.length) show(Object.fromEntries(changed.map((key) => [key, shown[key] ?? null])));
  };
  const follow = (found: Model | undefined) => {
    if (!found || found === wire) return;
    wire?.off("change:shown", take);
    wire = found;
    wire.on("change:shown", take);
    take();
  };
  const registered = (event: Event) => {
    if ((event as CustomEvent<string>).detail === id) follow(window.explorerModels?.get(id));
  };
  follow(model ?? window.explorerModels?.get(id));
  window.addEventListener("explorer-wire", registered);
  return () => {
    wire?.off("change:shown", take);
    window.removeEventListener("explorer-wire", registered);
  };
}
