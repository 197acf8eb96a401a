// Where a moment is on the time axis: long waits between compiles are cut short, for nothing happened in them. In a row
// a call is drawn as it is, or calls that lie too close together as one mark.

import { lastAtMost } from "../core/dom";
import { number } from "../core/labels";
import type { Call, Group } from "./data";

type Stretch = { from: number; to: number; x: number; width: number };

type Break = { x: number; width: number; seconds: number };

const BREAK = 22; // pixels
const LONG = 0.2; // of all the busy time: a wait longer than that is cut, if it lasts a second

export class Clock {
  readonly breaks: Break[] = [];
  private readonly stretches: Stretch[] = [];

  constructor(
    calls: readonly Call[],
    readonly width: number,
    running: [number, number][] = [],
  ) {
    const lasted = (call: Call): [number, number] => [call.start, call.start + Math.max(call.seconds, 0.001)];
    const spans = [...calls.map(lasted), ...running].sort((a, b) => a[0] - b[0]);
    const longest = Math.max(LONG * total(spans), 1);
    const joined = join(spans, longest);
    const room = Math.max(width - BREAK * (joined.length - 1), width / 2);
    const gap = joined.length > 1 ? (width - room) / (joined.length - 1) : 0;
    const sum = total(joined) || 1;
    let x = 0;
    for (const [i, [from, to]] of joined.entries()) {
      if (i) {
        this.breaks.push({ x, width: gap, seconds: from - joined[i - 1]![1] });
        x += gap;
      }
      const share = (room * (to - from)) / sum;
      this.stretches.push({ from, to, x, width: share });
      x += share;
    }
  }

  get start(): number {
    return this.stretches[0]?.from ?? 0;
  }

  x(time: number): number {
    const at = this.stretches[lastAtMost(this.stretches, ({ from }) => from, time)];
    if (!at) return 0;
    const share = at.to > at.from ? (time - at.from) / (at.to - at.from) : 0;
    return at.x + at.width * Math.min(Math.max(share, 0), 1);
  }

  /** Ticks at even times, with the distance in seconds from the start. */
  ticks(): { x: number; seconds: number }[] {
    const ticks: { x: number; seconds: number }[] = [];
    let free = -Infinity;
    for (const { from, to, x, width } of this.stretches) {
      const step = nice(((to - from) / Math.max(width, 1)) * 90);
      if (!(step > 0)) continue;
      for (let at = Math.ceil((from - this.start) / step - 1e-9) * step; at <= to - this.start; at += step) {
        const place = x + (width * (at + this.start - from)) / (to - from || 1);
        if (place < free || place > this.width - 8) continue;
        ticks.push({ x: place, seconds: at });
        free = place + 46;
      }
    }
    return ticks;
  }
}

function join(spans: [number, number][], longest: number): [number, number][] {
  const joined: [number, number][] = [];
  for (const [from, to] of spans) {
    const last = joined.at(-1);
    if (last && from - last[1] <= longest) last[1] = Math.max(last[1], to);
    else joined.push([from, to]);
  }
  return joined;
}

function total(spans: readonly [number, number][]): number {
  let [sum, end] = [0, -Infinity];
  for (const [from, to] of spans) {
    sum += Math.max(to - Math.max(from, end), 0);
    end = Math.max(end, to);
  }
  return sum;
}

const STEPS = [1, 2, 5, 10];
const SEXAGESIMAL = [15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];

function nice(least: number): number {
  if (!(least > 0)) return 0;
  if (least > 10) return SEXAGESIMAL.find((step) => step >= least) ?? Math.ceil(least / 86400) * 86400;
  const power = 10 ** Math.floor(Math.log10(least));
  return power * STEPS.find((step) => step * power >= least - 1e-12)!;
}

/** `1 h 5 min`, `3 min 20 s`, `4.5 s`, `20 ms`: the two largest units. */
export function lasting(seconds: number): string {
  if (seconds < 1)
    return seconds >= 0.001 || seconds === 0 ? `${Math.round(seconds * 1000)} ms` : `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 10) return `${Number(seconds.toFixed(1))} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  const rest = Math.round(seconds % 60);
  if (minutes < 60) return `${minutes} min${rest && rest < 60 ? ` ${rest} s` : ""}`;
  return `${Math.floor(minutes / 60)} h${minutes % 60 ? ` ${minutes % 60} min` : ""}`;
}

export type Mark = { x: number; width: number; calls: Call[] };

export type Lane = { name: string; groups: Group[]; calls: Call[] };

const SLIM = 5; // pixels: what is wider stands for itself
const LEAST = 3;
const MOST = 12; // of a mark that stands for several
const DENSE = 120; // calls of a lane: of more than that, those that are near each other are one mark

/** The most expensive groups with a lane each, the others together in the next; then what runs for the first time. */
export function lanes(groups: readonly Group[], most: number, running: readonly string[] = []): Lane[] {
  const own = groups.length > most ? groups.slice(0, most - 1) : groups;
  const rest = groups.slice(own.length);
  const lanes: Lane[] = own.map((group) => ({ name: group.name, groups: [group], calls: group.calls }));
  if (rest.length)
    lanes.push({
      name: `${number(rest.length)} more functions`,
      groups: rest,
      calls: rest.flatMap((group) => group.calls).sort((a, b) => a.start - b.start),
    });
  for (const name of running)
    if (!groups.some((group) => group.name === name)) lanes.push({ name, groups: [], calls: [] });
  return lanes;
}

export function marksOf(calls: readonly Call[], clock: Clock): Mark[] {
  const marks: Mark[] = [];
  const near = calls.length > DENSE ? MOST : 1;
  for (const call of calls) {
    const x = clock.x(call.start);
    const width = Math.max(clock.x(call.start + call.seconds) - x, LEAST);
    const last = marks.at(-1);
    const slim = width < SLIM && last !== undefined && (last.calls.length > 1 || last.width < SLIM);
    if (last && slim && x < last.x + last.width + near && x + width < last.x + MOST) {
      last.calls.push(call);
      last.width = Math.max(x + width - last.x, last.width);
    } else marks.push({ x, width, calls: [call] });
  }
  return marks;
}

type Band = { label: string; x: number; width: number };

/** The cells that ran, one after the other; if nobody noted them, what the outermost frame of each call stands in. */
export function bands(calls: readonly Call[], clock: Clock, cells: readonly [string, number, number][]): Band[] {
  if (cells.length)
    return cells
      .map(([label, from, to]) => ({ label, x: clock.x(from), width: clock.x(to) - clock.x(from) }))
      .filter(({ width }) => width >= 1);
  const all: Band[] = [];
  for (const call of [...calls].sort((a, b) => a.start - b.start)) {
    const label = call.stack.at(-1)?.label ?? "";
    const x = clock.x(call.start);
    const end = Math.max(clock.x(call.start + call.seconds), x + LEAST);
    const last = all.at(-1);
    if (last?.label === label) last.width = Math.max(end - last.x, last.width);
    else all.push({ label, x, width: end - x });
  }
  return all;
}
