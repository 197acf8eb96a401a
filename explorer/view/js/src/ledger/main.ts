// The ledger's way in: `mount` puts it into an element, from the bytes that an output carries.

import { whileInPage } from "../core/life";
import { unpacked } from "../core/python_link";
import standalone from "../core/standalone.css";
import { addSheet, style } from "../core/style";
import tokens from "../core/tokens.css";
import type { Message } from "./data";
import ledger from "./ledger.css";
import timeline from "./timeline.css";
import { LedgerViewer } from "./viewer";

addSheet(tokens + standalone + timeline + ledger);

const ORPHANED = 10_000; // milliseconds in which a newer output takes over what a notebook has taken out of the page

declare global {
  interface Window {
    /** By id, what shows a ledger: an output that is updated takes over what is there, with all that is open in it. */
    explorerLedgers?: Map<string, LedgerViewer[]>;
  }
}

export async function mount(host: HTMLElement, bytes: Uint8Array, { id }: { id: string }): Promise<LedgerViewer> {
  style(host);
  const message = await unpacked<Message>(bytes);
  const ledgers: Map<string, LedgerViewer[]> = (window.explorerLedgers ??= new Map());
  const all = ledgers.get(id) ?? [];
  ledgers.set(id, all);
  const orphan = all.find((viewer) => !viewer.root.isConnected || host.contains(viewer.root));
  if (orphan) {
    host.replaceChildren(orphan.root);
    orphan.load(message);
    return orphan;
  }
  const viewer = new LedgerViewer(message, id);
  whileInPage(viewer.root, () => {
    if (!all.includes(viewer)) all.push(viewer);
    return () => setTimeout(() => viewer.root.isConnected || all.splice(all.indexOf(viewer), 1), ORPHANED);
  });
  host.replaceChildren(viewer.root);
  viewer.start();
  return viewer;
}
