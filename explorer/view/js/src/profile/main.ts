// The profile's way in: `mount` puts it into an element, from the bytes that an output carries.

import { unpacked } from "../core/python_link";
import standalone from "../core/standalone.css";
import { addSheet, style } from "../core/style";
import tokens from "../core/tokens.css";
import type { Message } from "./data";
import panes from "./panes.css";
import profile from "./profile.css";
import { ProfileViewer } from "./viewer";

addSheet(tokens + standalone + profile + panes);

export async function mount(host: HTMLElement, bytes: Uint8Array, { id }: { id: string }): Promise<ProfileViewer> {
  style(host);
  const viewer = new ProfileViewer(await unpacked<Message>(bytes), id);
  host.replaceChildren(viewer.root);
  viewer.start();
  return viewer;
}
