// How wide a text of the graph's picture will be, in the picture's pixels.

export type TextKind = "title" | "sub" | "op";

// As in graph.css.
const FONTS: Record<TextKind, string> = {
  title: "600 13px system-ui, sans-serif",
  sub: "12px system-ui, sans-serif",
  op: '12px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace',
};
// Of one character, where nothing draws: in tests.
const ABOUT: Record<TextKind, number> = { title: 7.15, sub: 6.35, op: 7.3 };

let context: CanvasRenderingContext2D | null | undefined;

export function textWidth(text: string, kind: TextKind): number {
  context ??= globalThis.document?.createElement("canvas").getContext("2d") ?? null;
  if (!context) return text.length * ABOUT[kind];
  if (context.font !== FONTS[kind]) context.font = FONTS[kind];
  return context.measureText(text).width;
}
