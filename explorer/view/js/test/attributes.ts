// The attributes of nodes as columns, for tests.

import { Attributes } from "../src/core/graph";

/** Each distinct text once, in the order of their first use. */
const distinct = (texts: string[]): string[] => [...new Set(texts)];

/** Those of each node, by key. */
export function attributesOf(rows: Record<string, string>[]): Attributes {
  const pairs = rows.map((row) => Object.entries(row));
  const keys = distinct(pairs.flat().map(([key]) => key));
  const values = distinct(pairs.flat().map(([, value]) => value));
  return new Attributes(keys, values, {
    attributeStart: Int32Array.from([0, ...pairs.map((_, i) => pairs.slice(0, i + 1).flat().length)]),
    attributeKey: Int32Array.from(pairs.flat(), ([key]) => keys.indexOf(key)),
    attributeValue: Int32Array.from(pairs.flat(), ([, value]) => values.indexOf(value)),
  });
}
