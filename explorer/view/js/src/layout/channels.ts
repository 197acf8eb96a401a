// How edges run between the layers: down from a port, along a track of the channel, down to the next port. All links of
// one value share a track; tracks that overlap lie in an order that crosses little and covers nothing.

import { push } from "../core/buckets";

const TRACK = 9; // between parallel tracks
const BIN = 6; // tracks are reserved in steps of so many pixels
const PADDING = 16; // above the first track and below the last: room for an arrow head
const LEAST = 36; // a channel without tracks

/** One net in a channel: everything that hangs on one horizontal line. */
interface Net {
  low: number;
  high: number;
  tops: number[]; // x of the ports it comes down from
  bottoms: number[];
  level: number; // its track, counted from the lowest; -1 where it runs straight
}

export class Channel {
  readonly #nets = new Map<number, Net>();
  #levels = 0;
  #bottom = 0;

  /** Hangs a pin on a net: a port above, a port below, or a track at the side. */
  pin(net: number, x: number, kind: "top" | "bottom" | "side"): void {
    let it = this.#nets.get(net);
    if (!it) this.#nets.set(net, (it = { low: x, high: x, tops: [], bottoms: [], level: -1 }));
    it.low = Math.min(it.low, x);
    it.high = Math.max(it.high, x);
    if (kind === "top") it.tops.push(x);
    else if (kind === "bottom") it.bottoms.push(x);
  }

  get empty(): boolean {
    return this.#nets.size === 0;
  }

  /** Gives every net its track; returns the height that the channel needs. */
  assign(): number {
    const nets = [...this.#nets.values()].filter((net) => net.low !== net.high);
    if (nets.length === 0) return LEAST;
    // Of those going right the leftmost is lowest, of those going left the rightmost: then neighbours don't cross.
    const rightwards = nets.filter(goesRight).sort((a, b) => start(a) - start(b));
    const leftwards = nets.filter((net) => !goesRight(net)).sort((a, b) => start(b) - start(a));
    const origin = nets.reduce((least, net) => Math.min(least, net.low), Infinity) - BIN;
    const end = nets.reduce((most, net) => Math.max(most, net.high), -Infinity);
    const bin = (x: number) => Math.floor((x - origin) / BIN);
    const endsAt = new Map<number, Net[]>();
    for (const net of nets) for (const x of net.bottoms) push(endsAt, bin(x), net);

    const skyline = new Int32Array(bin(end) + 3);
    const seen = new Set<Net>();
    const place = (net: Net) => {
      const [first, last] = [Math.max(0, bin(net.low) - 1), bin(net.high) + 2];
      let level = 0;
      for (let i = first; i < last; i++) if (skyline[i]! > level) level = skyline[i]!;
      skyline.fill(level + 1, first, last);
      net.level = level;
      this.#levels = Math.max(this.#levels, level + 1);
    };
    // A net that ends where another begins must run below it, or their vertical parts would lie on each other.
    const beneath = (net: Net) => {
      const nets: Net[] = [];
      for (const x of net.tops) {
        for (let near = bin(x) - 1; near <= bin(x) + 1; near++) {
          for (const other of endsAt.get(near) ?? []) {
            if (!seen.has(other) && other.bottoms.some((bottom) => Math.abs(bottom - x) < 4)) nets.push(other);
          }
        }
      }
      return nets;
    };
    for (const net of [...rightwards, ...leftwards]) {
      const stack = [net];
      while (stack.length > 0) {
        const top = stack[stack.length - 1]!;
        if (!seen.has(top)) {
          seen.add(top);
          stack.push(...beneath(top));
        } else {
          stack.pop();
          if (top.level < 0) place(top);
        }
      }
    }
    return Math.max(LEAST, 2 * PADDING + (this.#levels - 1) * TRACK);
  }

  /** Where the channel lies, once it is placed. */
  settle(top: number, bottom: number): void {
    this.#bottom = bottom - (bottom - top - Math.max(0, this.#levels - 1) * TRACK) / 2;
  }

  /** The y of a net's track. */
  track(net: number): number {
    return this.#bottom - Math.max(0, this.#nets.get(net)?.level ?? 0) * TRACK;
  }
}

const mean = (values: number[]) => values.reduce((sum, x) => sum + x, 0) / values.length;
const start = (net: Net) => (net.tops.length > 0 ? mean(net.tops) : net.high);

function goesRight(net: Net): boolean {
  return (net.bottoms.length > 0 ? mean(net.bottoms) : net.high) > start(net);
}
