// Unpacks bzip2, an eighth smaller than gzip for code: ten views in a notebook are 100 kB smaller. What is unpacked was
// packed by explorer/view/page.py, in one piece; the checksum is not looked at.

const BLOCK = 0x314159;
const MOST_BITS = 20; // of a Huffman code
const PIECE = 50; // symbols after which another table may be used

export function bunzip(bytes: Uint8Array): Uint8Array {
  let at = 4; // "BZh9"
  let [held, bits] = [0, 0];
  const read = (count: number): number => {
    for (; bits < count; bits += 8) held = (held << 8) | bytes[at++]!;
    bits -= count;
    return (held >>> bits) & ((1 << count) - 1);
  };
  const out: number[] = [];
  while (read(24) === BLOCK) {
    read(24);
    read(24); // the rest of the mark, and of the checksum
    read(9);
    inverted(...block(read), out);
  }
  return Uint8Array.from(out);
}

/** The bytes of a block in the order of what follows each, and which of them is the first. */
function block(read: (bits: number) => number): [bytes: number[], first: number] {
  const first = read(24);
  const used: number[] = [];
  const groups = read(16);
  for (let group = 0; group < 16; group++) {
    if (!((groups >> (15 - group)) & 1)) continue;
    const members = read(16);
    for (let byte = 0; byte < 16; byte++) if ((members >> (15 - byte)) & 1) used.push(16 * group + byte);
  }
  const order = Array.from({ length: read(3) }, (_, table) => table);
  const tableAt = Array.from({ length: read(15) }, () => {
    let place = 0;
    while (read(1)) place++;
    return toFront(order, place);
  });
  const tables = order.map(() => {
    let length = read(5);
    const lengths = Array.from({ length: used.length + 2 }, () => {
      while (read(1)) length += read(1) ? -1 : 1;
      return length;
    });
    const count = new Array<number>(MOST_BITS + 1).fill(0);
    for (const bits of lengths) count[bits]!++;
    const symbols = [...lengths.keys()].sort((a, b) => lengths[a]! - lengths[b]! || a - b);
    return { count, symbols };
  });
  const bytes: number[] = [];
  let [run, weight] = [0, 1];
  for (let taken = 0; ; taken++) {
    const { count, symbols } = tables[tableAt[Math.floor(taken / PIECE)]!]!;
    let [code, least, index, length] = [read(1), 0, 0, 1];
    while (code - least >= count[length]!) {
      index += count[length]!;
      least = (least + count[length++]!) * 2;
      code = code * 2 + read(1);
    }
    const symbol = symbols[index + code - least]!;
    if (symbol < 2) {
      run += weight << symbol;
      weight *= 2;
      continue;
    }
    for (; run; run--) bytes.push(used[0]!);
    weight = 1;
    if (symbol > used.length) return [bytes, first];
    bytes.push(toFront(used, symbol - 1));
  }
}

function toFront(list: number[], place: number): number {
  const value = list[place]!;
  for (let at = place; at; at--) list[at] = list[at - 1]!;
  list[0] = value;
  return value;
}

/** The block in its own order, with what repeats written out. */
function inverted(bytes: number[], first: number, out: number[]): void {
  const start = new Array<number>(257).fill(0);
  for (const byte of bytes) start[byte + 1]!++;
  for (let byte = 0; byte < 256; byte++) start[byte + 1]! += start[byte]!;
  const next = new Uint32Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) next[start[bytes[i]!]!++] = i;
  let [last, same] = [-1, 0];
  for (let i = 0, place = next[first]!; i < bytes.length; i++, place = next[place]!) {
    const byte = bytes[place]!;
    if (same === 4) {
      for (let k = 0; k < byte; k++) out.push(last);
      same = 0;
      last = -1;
      continue;
    }
    same = byte === last ? same + 1 : 1;
    last = byte;
    out.push(byte);
  }
}
