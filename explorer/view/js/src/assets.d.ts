// What build.mjs makes of files: style sheets become strings, workers functions that need nothing around them.

declare module "*.css" {
  const text: string;
  export default text;
}

declare module "worker:*" {
  const work: (self: import("./layout/layout.worker").Port) => void;
  export default work;
}
