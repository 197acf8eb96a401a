// What of the ledger is open, filtered and chosen: it outlives a new output of the same ledger.

import type { Call } from "./data";

export interface State {
  filter: string;
  tab: string;
  /** Keys of what is unfolded. */
  open: Set<string>;
  /** How many events of a group are drawn. */
  most: Map<string, number>;
  chosen?: Call;
  /** How far it is scrolled. */
  top: number;
}

export const newState = (): State => ({ filter: "", tab: "functions", open: new Set(), most: new Map(), top: 0 });
