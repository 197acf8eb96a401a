// What build.mjs turns into strings: style sheets, and workers bundled whole.

declare module "*.css" {
  const text: string;
  export default text;
}

declare module "worker:*" {
  const source: string;
  export default source;
}
