/** The indices of `keys`, grouped by key: those of key k are `list[start[k]]` … `list[start[k + 1] - 1]`, in order. */
export type Buckets = { start: Int32Array; list: Int32Array };

/** Groups indices by their key, 0 ≤ key < count, in linear time. */
export function buckets(count: number, keys: ArrayLike<number>): Buckets {
  const start = new Int32Array(count + 1);
  for (let i = 0; i < keys.length; i++) start[keys[i]! + 1]!++;
  for (let k = 0; k < count; k++) start[k + 1]! += start[k]!;
  const next = start.slice();
  const list = new Int32Array(keys.length);
  for (let i = 0; i < keys.length; i++) list[next[keys[i]!]!++] = i;
  return { start, list };
}

/** What one key has of compressed rows; nothing where there is no such key. */
export const rowOf = ({ start, list }: Buckets, key: number): Int32Array =>
  list.subarray(start[key] ?? 0, start[key + 1] ?? 0);

/** Running sums of a value by index, the first 0. */
export function sums<Sums extends Int32Array | Float64Array>(into: Sums, value: (i: number) => number): Sums {
  for (let i = 0; i + 1 < into.length; i++) into[i + 1] = into[i]! + value(i);
  return into;
}

/** The value of a key, which is made if there is none. */
export function made<K, V>(
  map: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  make: () => V,
): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const value = make();
  map.set(key, value);
  return value;
}

export function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

/** How often each value comes, the most frequent first. */
export function tallied<T>(values: Iterable<T>): [value: T, times: number][] {
  const times = new Map<T, number>();
  for (const value of values) times.set(value, (times.get(value) ?? 0) + 1);
  return [...times].sort(([, a], [, b]) => b - a);
}
