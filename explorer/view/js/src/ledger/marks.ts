// What the timeline draws in a row: a call as it is, or calls that lie too close together as one mark.

import type { Clock } from "./clock";
import type { Call, Group } from "./data";
import { number } from "./format";

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

export type Band = { label: string; x: number; width: number };

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
