// Amounts as a person reads them, as explorer/model/units.py writes them: three digits and a unit.

const PREFIXES = ["", "k", "M", "G", "T", "P", "E"];
const SECONDS = ["s", "ms", "µs", "ns"].map((name, i) => [10 ** (-3 * i), name] as const);

/** In the largest unit of which there is one, as it will be printed: to a tenth, from `whole` on to one. */
function scaled(value: number, whole: number): [value: number, prefix: string] {
  let prefix = 0;
  const printed = () => Number(value.toFixed(value >= whole || !prefix ? 0 : 1));
  for (; prefix < PREFIXES.length - 1 && printed() >= 1000; prefix++) value /= 1000;
  return [value, PREFIXES[prefix]!];
}

export function bytesText(bytes: number): string {
  const [value, prefix] = scaled(bytes, 100);
  return `${value >= 100 || !prefix ? Math.round(value).toLocaleString("en") : value.toFixed(1)} ${prefix}B`;
}

/** `2.4 P`: operations. */
export function amount(count: number): string {
  const [value, prefix] = scaled(count, 1000);
  return prefix ? `${value.toFixed(1)} ${prefix}` : String(Math.round(value));
}

/** Three digits: `41.3 ms`. */
export function secondsText(seconds: number): string {
  if (!(seconds > 0)) return "0 s";
  const three = (size: number) => Number((seconds / size).toPrecision(3));
  const [size, unit] = SECONDS.find(([size]) => three(size) >= 1) ?? SECONDS[3]!;
  return `${three(size).toLocaleString("en")} ${unit}`;
}
