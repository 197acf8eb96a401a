// The wire to Python, where a kernel is alive: explorer/view/live.py registers a model for each capture it shows.

export interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
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
