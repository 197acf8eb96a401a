// Bundles the viewer: `node build.mjs` writes it, `--check` compares it with the committed one, `--test` runs the tests.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import * as esbuild from "esbuild";

const ROOT = dirname(fileURLToPath(import.meta.url));
const BUNDLE = resolve(ROOT, "../static/viewer.js");
const LIMIT = 200_000; // bytes: the bundle travels inside every saved output

const common = {
  absWorkingDir: ROOT,
  bundle: true,
  format: "esm",
  target: "es2022",
  legalComments: "none",
  charset: "utf8",
  logLevel: "warning",
  write: false,
};

// `import work from "worker:./x.worker.ts"` is that file, bundled as one function of the worker's `self` that needs nothing
// around it: an output has no address of its own, so a worker starts from the function's text; where there can't be one,
// the function itself is called. The code is there once for both.
const workers = {
  name: "worker",
  setup(build) {
    build.onResolve({ filter: /^worker:/ }, ({ path, resolveDir }) => ({
      path: resolve(resolveDir, path.slice("worker:".length)),
      namespace: "worker",
    }));
    build.onLoad({ filter: /.*/, namespace: "worker" }, async ({ path }) => {
      const { outputFiles } = await esbuild.build({ ...common, entryPoints: [path], format: "iife", minify: true });
      return { contents: `export default function (self) {${outputFiles[0].text}}`, loader: "js", watchFiles: [path] };
    });
  },
};

// `import css from "./style.css"` is the sheet as a string, minified: it travels inside every saved output too.
const sheets = {
  name: "sheet",
  setup(build) {
    build.onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await esbuild.transform(readFileSync(path, "utf8"), { loader: "css", minify: true });
      return { contents: code.trim(), loader: "text", watchFiles: [path] };
    });
  },
};

async function bundle() {
  const entryPoints = [join(ROOT, "src/main.ts")];
  const { outputFiles } = await esbuild.build({ ...common, entryPoints, minify: true, plugins: [workers, sheets] });
  return Buffer.from(outputFiles[0].contents);
}

async function build() {
  const code = await bundle();
  mkdirSync(dirname(BUNDLE), { recursive: true });
  writeFileSync(BUNDLE, code);
  console.log(`viewer.js: ${code.length.toLocaleString("en")} bytes of at most ${LIMIT.toLocaleString("en")}`);
}

async function check() {
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  for (const project of ["tsconfig.json", "test/tsconfig.json"]) {
    const { status } = spawnSync(process.execPath, [tsc, "-p", project], { cwd: ROOT, stdio: "inherit" });
    if (status !== 0) fail(`the types of ${project} don't hold`);
  }
  const code = await bundle();
  if (code.length > LIMIT) fail(`viewer.js has ${code.length} bytes, more than the ${LIMIT} allowed`);
  if (!existsSync(BUNDLE)) fail("viewer.js is missing: run `npm run build` and commit it");
  if (!code.equals(readFileSync(BUNDLE))) fail("viewer.js is stale: run `npm run build` and commit it");
  console.log(`viewer.js is fresh: ${code.length.toLocaleString("en")} bytes`);
}

async function test() {
  const names = readdirSync(join(ROOT, "test")).filter((name) => name.endsWith(".test.ts"));
  const built = mkdtempSync(join(tmpdir(), "viewer-test-"));
  try {
    const { outputFiles } = await esbuild.build({
      ...common,
      entryPoints: names.map((name) => join(ROOT, "test", name)),
      outdir: built,
      platform: "node",
      sourcemap: "inline",
      plugins: [workers, sheets],
    });
    const files = outputFiles.map(({ path, contents }) => {
      const file = join(built, basename(path, ".js") + ".mjs");
      writeFileSync(file, contents);
      return file;
    });
    const { status } = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...files], { stdio: "inherit" });
    process.exitCode = status ?? 1;
  } finally {
    rmSync(built, { recursive: true });
  }
}

function fail(reason) {
  console.error(reason);
  process.exit(1);
}

const modes = { undefined: build, "--check": check, "--test": test };
const mode = modes[process.argv[2]] ?? fail(`unknown mode ${process.argv[2]}; allowed: none, --check, --test`);
await mode();
