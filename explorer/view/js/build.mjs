// Bundles the views: `node build.mjs` writes them, `--check` compares them with the committed ones, `--test` runs the
// tests.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import * as esbuild from "esbuild";

const ROOT = dirname(fileURLToPath(import.meta.url));
const STATIC = resolve(ROOT, "../static");
const LONGEST = 120; // characters of a line
// Bytes at most: a bundle travels inside every saved output.
const BUNDLES = [
  { name: "viewer.js", from: "src/viewer/main.ts", limit: 220_000 },
  { name: "ledger.js", from: "src/ledger/main.ts", limit: 40_960 },
  { name: "profile.js", from: "src/profile/main.ts", limit: 40_960 },
  { name: "findings.js", from: "src/findings/main.ts", limit: 10_240 },
  { name: "findings.css", from: "src/findings/findings.css", limit: 6_144 },
  { name: "hotpath.js", from: "src/hotpath/main.ts", limit: 10_240 },
  { name: "hotpath.css", from: "src/hotpath/hotpath.css", limit: 9_216 },
];

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

// `import work from "worker:./x.worker.ts"` is that file, bundled as one function of the worker's `self` that needs
// nothing around it: an output has no address of its own, so a worker starts from the function's text; where there
// can't be one, the function itself is called. The code is there once for both.
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

async function bundle({ from }) {
  const entryPoints = [join(ROOT, from)];
  const plugins = from.endsWith(".css") ? [] : [workers, sheets];
  const { outputFiles } = await esbuild.build({ ...common, entryPoints, minify: true, plugins });
  return Buffer.from(outputFiles[0].contents);
}

const bytes = (count) => `${count.toLocaleString("en")} bytes`;

async function build() {
  mkdirSync(STATIC, { recursive: true });
  for (const target of BUNDLES) {
    const code = await bundle(target);
    writeFileSync(join(STATIC, target.name), code);
    console.log(`${target.name}: ${bytes(code.length)} of at most ${bytes(target.limit)}`);
  }
}

async function check() {
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  for (const project of ["tsconfig.json", "test/tsconfig.json"]) {
    const { status } = spawnSync(process.execPath, [tsc, "-p", project], { cwd: ROOT, stdio: "inherit" });
    if (status !== 0) fail(`the types of ${project} don't hold`);
  }
  for (const target of BUNDLES) {
    const code = await bundle(target);
    const file = join(STATIC, target.name);
    if (code.length > target.limit)
      fail(`${target.name} has ${bytes(code.length)}, more than the ${bytes(target.limit)} allowed`);
    if (!existsSync(file)) fail(`${target.name} is missing: run \`npm run build\` and commit it`);
    if (!code.equals(readFileSync(file))) fail(`${target.name} is stale: run \`npm run build\` and commit it`);
    console.log(`${target.name} is fresh: ${bytes(code.length)}`);
  }
}

async function test() {
  const names = readdirSync(join(ROOT, "test"), { recursive: true }).filter((name) => name.endsWith(".test.ts"));
  const built = mkdtempSync(join(tmpdir(), "viewer-test-"));
  try {
    const { outputFiles } = await esbuild.build({
      ...common,
      entryPoints: names.map((name) => join(ROOT, "test", name)),
      outdir: built,
      outbase: join(ROOT, "test"),
      platform: "node",
      sourcemap: "inline",
      plugins: [workers, sheets],
    });
    const files = outputFiles.map(({ path, contents }) => {
      const file = path.replace(/\.js$/, ".mjs");
      mkdirSync(dirname(file), { recursive: true });
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

/** The formatter leaves strings and comments as they are, however long. */
function lines() {
  const names = ["src", "test"].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true }).map((name) => join(folder, name)),
  );
  let long = 0;
  for (const name of names.filter((name) => /\.(ts|css)$/.test(name)).concat("build.mjs", "biome.jsonc"))
    for (const [at, line] of readFileSync(join(ROOT, name), "utf8").split("\n").entries())
      if (line.length > LONGEST) {
        console.error(`${name}:${at + 1} has ${line.length} characters, more than the ${LONGEST} allowed`);
        long++;
      }
  process.exitCode = long ? 1 : 0;
}

const modes = { undefined: build, "--check": check, "--test": test, "--lines": lines };
const mode = modes[process.argv[2]] ?? fail(`unknown mode ${process.argv[2]}; allowed: none, --check, --test, --lines`);
await mode();
