// Inside each output: turns the static picture into the viewer, whose code and data stand beside it, packed.
//
// It runs wherever an output lands: a notebook's page, an editor's webview, an iframe, a file. So code starts as a
// script written into the page, which is allowed wherever this one was; blob: addresses, which are often forbidden,
// come second. The code runs once in a page, whichever output brings it; each chunk of it likewise.

import { bunzip } from "./bunzip";

// Set before this text: the output's name, and the version of the code, which tells bundles apart.
declare const ID: string;
declare const VERSION: string;
declare const ALPHABET: string;

interface Core {
  mount(host: HTMLElement, data: Uint8Array, options: { id: string; bookmark?: string | undefined }): Promise<unknown>;
  has?(chunk: string): boolean;
  receive?(run: (chunk: string, packed?: string) => Promise<unknown>): void;
}

interface Globals {
  /** By version; outputs of earlier Explorers keep theirs here, too. */
  explorerViewers?: Map<string, Core | Promise<Core>>;
  explorerCore?: Record<string, Core>;
  /** By version, the texts that chunks come from. */
  explorerChunks?: Record<string, Record<string, [packed: string, names: string[]]>>;
  explorerLedgers?: Map<string, { root: HTMLElement }[]>;
}

const page = window as unknown as Globals;
page.explorerViewers ??= new Map();
const viewers = page.explorerViewers;
page.explorerCore ??= {};
const cores = page.explorerCore;
page.explorerChunks ??= {};
page.explorerChunks[VERSION] ??= {};
const brought = page.explorerChunks[VERSION];
const CARRIED = `[data-part="viewer"][data-version="${VERSION}"]`;
const CORE = `window.explorerCore["${VERSION}"]`;

const VALUE = new Uint8Array(128);
for (let i = 0; i < 85; i++) VALUE[ALPHABET.charCodeAt(i)] = i;

/** Five letters are four bytes; of the last ones, as many letters are missing as bytes. */
function unpack(text: string): Uint8Array {
  const values = new Uint8Array(Math.ceil(text.length / 5) * 4);
  const view = new DataView(values.buffer);
  for (let i = 0; i < text.length; i += 5) {
    let value = 0;
    for (let k = i; k < i + 5; k++) value = value * 85 + (k < text.length ? VALUE[text.charCodeAt(k)]! : 84);
    view.setUint32((i / 5) * 4, value);
  }
  return values.subarray(0, Math.floor((text.length * 4) / 5));
}

/** The texts of the core and of chunks, packed together. */
const inflate = (packed: string): string[] => new TextDecoder().decode(bunzip(unpack(packed))).split("\f");

/** Run a script; `ran` says whether it did: a page that forbids it only says so later. */
async function run(code: string, ran: () => unknown): Promise<void> {
  const script = document.createElement("script");
  script.textContent = code;
  document.head.append(script);
  script.remove();
  if (ran()) return;
  try {
    await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  } catch (error) {
    throw error instanceof TypeError ? new Error("this page allows no script of its own") : error;
  }
}

/** Run what isn't there yet of an output's code. */
async function bring(packed: string, names: string[]): Promise<Core> {
  const here = () => cores[VERSION];
  const missing = (name: string) => (name === "core" ? !here() : !here()?.has?.(name));
  if (names.some(missing)) {
    const texts = inflate(packed);
    for (const [i, name] of names.entries()) {
      if (!missing(name)) continue;
      const text = `"use strict";${texts[i]}`;
      const code = name === "core" ? `${CORE}=(()=>{${text}return core})()` : `(core=>{${text}})(${CORE})`;
      await run(code, () => !missing(name));
      if (name === "core") here()!.receive?.(late);
    }
  }
  return here()!;
}

/** Run a chunk that the viewer lacks, from the kernel's answer or from any output; nothing where none has it. */
async function late(chunk: string, packed?: string): Promise<void> {
  if (packed) return void (await bring(packed, [chunk]));
  const carrier = document.querySelector<HTMLElement>(`${CARRIED}[data-chunks~="${chunk}"]`);
  if (carrier) await bring(carrier.textContent!, namesOf(carrier));
  else if (brought[chunk]) await bring(...brought[chunk]);
}

const namesOf = ({ dataset }: HTMLElement) => dataset.chunks!.split(" ");

/**
 * The viewer with what it starts with; outputs start together, and each waits for the one before. What comes later
 * stays packed until it is wanted, and is remembered: a notebook takes an output out of the page that scrolls away.
 */
function viewer(host: Element): Promise<Core> {
  const [first, ...others] = host.querySelectorAll<HTMLElement>(CARRIED);
  for (const other of others)
    for (const chunk of namesOf(other)) brought[chunk] ??= [other.textContent!, namesOf(other)];
  const before = Promise.resolve(viewers.get(VERSION)).catch(() => undefined);
  const now = before.then(() => bring(first!.textContent!, namesOf(first!)));
  viewers.set(VERSION, now);
  return now;
}

async function start(host: HTMLElement): Promise<void> {
  const fallback = host.querySelector<HTMLElement>(".explorer-static")!;
  const place = document.createElement("div");
  // A newer output of what is shown already: that stays in sight while the new data is read.
  const shown = page.explorerLedgers?.get(ID)?.find(({ root }) => !root.isConnected);
  if (shown) {
    fallback.hidden = true;
    place.append(shown.root);
    host.append(place);
  }
  try {
    const { mount } = await viewer(host);
    host.append(place);
    const data = host.querySelector('[data-part]:not([data-part="viewer"])')!;
    await mount(place, unpack(data.textContent!), { id: ID, bookmark: host.dataset.bookmark });
    fallback.hidden = true;
    fit(host);
  } catch (error) {
    place.remove();
    fallback.hidden = false;
    const note = document.createElement("p");
    note.textContent = `The interactive view could not start: ${error instanceof Error ? error.message : error}`;
    fallback.append(note);
  }
}

/** An iframe around this output alone was made as high as the picture. */
function fit(host: Element): void {
  let frame: Element | null = null;
  try {
    frame = window.frameElement;
  } catch {
    return; // another site's page is around it, and sees to its frames itself
  }
  const isAlone = [...document.body.children].every((child) => child === host || child.matches("script, style"));
  if (frame && isAlone) (frame as HTMLElement).style.height = `${document.documentElement.scrollHeight}px`;
}

for (const host of document.querySelectorAll<HTMLElement>(`[data-explorer="${ID}"]:not([data-started])`)) {
  host.dataset.started = "";
  void start(host);
}
