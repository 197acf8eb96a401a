// JupyterLab's sidebar with the page of the session. A prebuilt extension is a module of webpack's federation: a
// container under its name, which is given what JupyterLab shares and gives the plugin.

import { type Application, lab, share, type Tracker } from "./lab";
import { Sidebar } from "./sidebar";

const NAME = "explorer-session";
const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16"><g class="jp-icon3" fill="#616161">' +
  '<rect x="1" y="2" width="14" height="3" rx="1"/><rect x="1" y="6.5" width="9" height="3" rx="1"/>' +
  '<rect x="1" y="11" width="5" height="3" rx="1"/></g></svg>';

async function extension() {
  const found = await lab(ICON);
  const plugin = {
    id: `${NAME}:plugin`,
    description: "Sidebar with the functions that JAX compiled in this session.",
    autoStart: true,
    requires: [found.tracker],
    activate(app: Application, tracker: Tracker) {
      const sidebar = new Sidebar(app, found, tracker);
      app.shell.add(sidebar.widget, "right", { rank: 900 });
      app.commands.addCommand("explorer:session", {
        label: "Explorer: what was compiled in this session",
        execute: () => app.shell.activateById(sidebar.widget.id),
      });
    },
  };
  return () => ({ __esModule: true, default: plugin });
}

const containers = ((window as unknown as { _JUPYTERLAB?: Record<string, unknown> })._JUPYTERLAB ??= {});
containers[NAME] = {
  init: share,
  get: (module: string) =>
    module === "./extension" ? extension() : Promise.reject(new Error(`${NAME} has no module ${module}`)),
};
