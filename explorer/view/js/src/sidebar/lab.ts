// The few things of JupyterLab that the sidebar uses, as it shares them with its extensions. JupyterLab's packages are
// not installed for this: what is here is what is called.

export type Signal<A = unknown> = { connect(slot: (sender: unknown, args: A) => void): void };

export interface Kernel {
  requestExecute(content: {
    code: string;
    silent: boolean;
    store_history: boolean;
    user_expressions: Record<string, string>;
  }): { done: Promise<{ content: { user_expressions?: Record<string, Expression> } }> };
}

interface Expression {
  status: string;
  data?: { "application/json"?: Record<string, unknown> };
  evalue?: string;
}

export interface NotebookPanel {
  id: string;
  title: { label: string };
  sessionContext: { session: { kernel: Kernel | null } | null; kernelChanged: Signal };
}

export type Tracker = { currentWidget: NotebookPanel | null; currentChanged: Signal };

export interface Widget {
  id: string;
  node: HTMLElement;
  isVisible: boolean;
  title: { label: string; caption: string; icon?: unknown; closable: boolean };
  onAfterShow(): void;
}

export interface Application {
  shell: {
    add(widget: Widget, area: string, options?: { rank?: number; mode?: string }): void;
    activateById(id: string): void;
  };
  commands: { addCommand(id: string, options: { label: string; execute: () => void }): void };
}

type Module = Record<string, unknown>;
type Scope = Record<string, Record<string, { get: () => Promise<() => Module> }>>;

let scope: Scope = {};

export const share = (shared: Scope): void => void (scope = shared);

/** A package of the running JupyterLab; it shares one version of each. */
async function shared(name: string): Promise<Module> {
  const versions = Object.values(scope[name] ?? {});
  if (!versions.length) throw new Error(`this JupyterLab doesn't share ${name}`);
  return (await versions[0]!.get())();
}

export type Lab = { Widget: new () => Widget; tracker: unknown; executed: Signal; icon: unknown };

export async function lab(svg: string): Promise<Lab> {
  const [widgets, notebook, components] = await Promise.all(
    ["@lumino/widgets", "@jupyterlab/notebook", "@jupyterlab/ui-components"].map(shared),
  );
  const Icon = components!.LabIcon as new (options: { name: string; svgstr: string }) => unknown;
  return {
    Widget: widgets!.Widget as new () => Widget,
    tracker: notebook!.INotebookTracker,
    executed: (notebook!.NotebookActions as { executed: Signal }).executed,
    icon: new Icon({ name: "explorer:session", svgstr: svg }),
  };
}
