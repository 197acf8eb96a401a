// What the compiler printed of each node beside its name, type and operands: explorer/model/attributes.py.

/** Compressed rows: node `i` has the keys and values `start[i]` … `start[i + 1] - 1`, in the order of the text. */
export type AttributeColumns = Record<"attributeStart" | "attributeKey" | "attributeValue", Int32Array>;

export class Attributes {
  constructor(
    private readonly keys: string[],
    private readonly values: string[],
    private readonly c: AttributeColumns,
  ) {}

  of(node: number): [key: string, value: string][] {
    const { attributeKey: key, attributeValue: value } = this.c;
    return this.#rows(node).map((row) => [this.keys[key[row]!]!, this.values[value[row]!]!]);
  }

  /** A node's value of the first of some keys that it has. */
  get(node: number, ...names: string[]): string | undefined {
    return this.of(node).find(([key]) => names.includes(key))?.[1];
  }

  has = (...names: string[]): boolean => this.keys.some((key) => names.includes(key));

  /** For each node, whether one of its attributes passes; each distinct pair is tested once. */
  mask(test: (key: string, value: string) => boolean): Uint8Array {
    const { keys, values } = this;
    const { attributeStart: start, attributeKey: key, attributeValue: value } = this.c;
    const passes = new Map<number, boolean>();
    return Uint8Array.from({ length: start.length - 1 }, (_, node) =>
      this.#rows(node).some((row) => {
        const pair = key[row]! * values.length + value[row]!;
        if (!passes.has(pair)) passes.set(pair, test(keys[key[row]!]!, values[value[row]!]!));
        return passes.get(pair)!;
      })
        ? 1
        : 0,
    );
  }

  #rows(node: number): number[] {
    const { attributeStart: start } = this.c;
    return Array.from({ length: start[node + 1]! - start[node]! }, (_, i) => start[node]! + i);
  }
}
