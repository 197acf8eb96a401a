// Bundles the views: `node build.mjs` writes them, `--check` compares them with the committed ones, `--test` runs the
// tests.
//
// What a page doesn't show isn't in it: each `import("./x_pane")` in the viewer makes a chunk of its own, and Python
// puts those into an output that it can show (explorer/view/page.py). A chunk can't import anything, for a strict
// page runs no script that has an address. So it is text that takes what it needs from the core, which holds every
// module that the entry reaches, or more than one chunk.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import * as esbuild from "esbuild";

const ROOT = dirname(fileURLToPath(import.meta.url));
const STATIC = resolve(ROOT, "../static");
const LONGEST = 120; // characters of a line
// Bytes at most: a bundle travels inside every saved output; of one with chunks, all of them together. Of those the
// core and the viewer's own run when a page opens, the others when they are asked for: tests/unit/view/test_view.py.
const BUNDLES = [
  { name: "viewer.js", from: "src/viewer/main.ts", limit: 292_000 },
  { name: "ledger.js", from: "src/ledger/viewer.ts", limit: 40_960 },
  { name: "profile.js", from: "src/profile/viewer.ts", limit: 40_960 },
  { name: "loader.js", from: "src/loader/loader.ts", limit: 4_096 },
  { name: "findings.js", from: "src/report/findings.ts", limit: 10_240 },
  { name: "findings.css", from: "src/report/findings.css", limit: 6_144 },
  { name: "hotpath.js", from: "src/report/hotpath.ts", limit: 10_240 },
  { name: "hotpath.css", from: "src/report/hotpath.css", limit: 9_216 },
  { name: "session.js", from: "src/report/session.ts", limit: 6_144 },
  { name: "session.css", from: "src/report/session.css", limit: 9_216 },
  // JupyterLab loads it as a script, from the folder that the wheel puts into share/jupyter/labextensions.
  { name: "../labextension/static/remoteEntry.js", from: "src/sidebar/main.ts", limit: 9_216, format: "iife" },
];
const LOADED = ["viewer.js", "ledger.js", "profile.js"]; // what the loader runs

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

/** What esbuild makes of one entry, with the path of each module in it. */
async function bundled(entry, plugins = []) {
  const { outputFiles, metafile } = await esbuild.build({
    ...common,
    ...entry,
    minify: true,
    metafile: true,
    outdir: STATIC, // nothing is written; the metafile wants it
    plugins: [...plugins, workers, sheets],
  });
  const inputs = Object.entries(Object.values(metafile.outputs)[0].inputs);
  const modules = inputs.filter(([, { bytesInOutput }]) => bytesInOutput).map(([path]) => path.replace(`${ROOT}/`, ""));
  return { text: outputFiles[0].text, modules: new Set(modules) };
}

/** Leaves `import("./x")` as the name of a chunk, and calls back with its path. */
const separated = (found) => ({
  name: "chunks",
  setup(build) {
    build.onResolve({ filter: /^\./ }, ({ path, resolveDir, kind }) => {
      if (kind !== "dynamic-import") return undefined;
      const name = basename(path);
      found(name, `${resolve(resolveDir, path)}.ts`);
      return { path: `chunk:${name}`, external: true };
    });
  },
});

/** Makes what is imported from modules of the core the core's; `given` is what it gives of each, if that is known. */
const ofCore = (core, given) => ({
  name: "core",
  setup(build) {
    build.onResolve({ filter: /^(\.|worker:)/ }, ({ path, resolveDir, kind }) => {
      if (kind !== "import-statement") return undefined;
      const worker = path.startsWith("worker:") ? "worker:" : "";
      const file = resolve(resolveDir, path.slice(worker.length));
      const module = worker + relative(ROOT, /\.(ts|css)$/.test(file) ? file : `${file}.ts`);
      if (!core.has(module)) return undefined;
      return given ? { path: module, namespace: "core" } : { path: `core:${module}`, external: true };
    });
    build.onLoad({ filter: /.*/, namespace: "core" }, ({ path }) => ({
      contents: [...(given?.get(path) ?? [])]
        .map(([exported, name]) => (exported === "default" ? `export default core.${name}` : constant(exported, name)))
        .join(";"),
    }));
  },
});

const constant = (exported, name) => `export const ${exported} = core.${name}`;

const IMPORT = /\bimport(?: ([\w$]+),?)?(?:\{([^}]*)\})? ?from"core:([^"]*)";/g;
const EXPORT = /export\{([^}]*)\};\s*$/;
const pairs = (list) => list.split(",").map((pair) => pair.split(" as ")); // `a as b`, or `a` alone

/** A bundle that the loader runs: the text of its core, which defines `core`, and that of each chunk, by name. */
async function loaded(from) {
  const chunks = new Map(); // their files by name
  const separate = separated((name, file) => {
    if ((chunks.get(name) ?? file) !== file) fail(`two chunks are called ${name}: ${file} and ${chunks.get(name)}`);
    chunks.set(name, file);
  });
  const { modules: core } = await bundled({ entryPoints: [join(ROOT, from)] }, [separate]);
  const reached = new Map();
  for (const [name, file] of chunks) // grows: a chunk may have chunks
    reached.set(name, (await bundled({ entryPoints: [file] }, [separate])).modules);
  const all = [...reached.values()].flatMap((modules) => [...modules]);
  for (const [at, module] of all.entries()) if (all.indexOf(module) !== at) core.add(module);
  for (const module of core)
    if (/^export let /m.test(readFileSync(join(ROOT, module.replace("worker:", "")), "utf8")))
      fail(`${module} exports a variable: a chunk would have its first value for good`);

  const names = new Map(); // of what chunks take from the core: a short name by export, by module
  let count = 0;
  const name = (module, exported) => {
    const given = names.get(module) ?? new Map();
    names.set(module, given);
    if (!given.has(exported)) given.set(exported, `c${count++}`);
  };
  const sorted = [...chunks].sort(([a], [b]) => (a < b ? -1 : 1));
  const texts = new Map();
  for (const [, file] of sorted) {
    const { text } = await bundled({ entryPoints: [file] }, [separate, ofCore(core)]);
    for (const [, whole, list, module] of text.matchAll(IMPORT)) {
      if (whole) name(module, "default");
      for (const [exported] of list ? pairs(list) : []) name(module, exported);
    }
  }
  for (const [chunk, file] of sorted) {
    const { text } = await bundled({ entryPoints: [file] }, [separate, ofCore(core, names)]);
    const shown = pairs(EXPORT.exec(text)?.[1] ?? fail(`${chunk} exports nothing`));
    const made = text.replace(
      EXPORT,
      () => `return{${shown.map(([local, exported = local]) => `${exported}:${local}`)}}`,
    );
    texts.set(chunk, loads(`core.provide("${chunk}",()=>{${made}});`, chunk));
  }
  const entry = [`export * from "./${from}";`];
  for (const [module, given] of names)
    for (const [exported, name] of given)
      entry.push(`export { ${exported} as ${name} } from "${module.startsWith("worker:") ? "" : "./"}${module}";`);
  const stdin = { contents: entry.join("\n"), resolveDir: ROOT, loader: "ts" };
  const { text } = await bundled({ stdin }, [separate]);
  const given = (_, list) => `const core={${pairs(list).map(([local, name = local]) => `${name}:${local}`)}};`;
  return { core: loads(text.replace(EXPORT, given), from), chunks: texts };
}

/** Text of a core or a chunk, its chunks loaded through the core; nothing else may be imported or exported. */
function loads(text, name) {
  const made = text.replace(/\bimport\("chunk:(\w+)"\)/g, 'core.load("$1")').trim();
  try {
    new Function(made); // not called: a script that is no module can neither import nor export
  } catch (error) {
    fail(`${name} is no script: ${error.message}`);
  }
  if (made.includes("\f")) fail(`${name} holds a form feed, which stands between chunks`);
  return made;
}

/** The files of a bundle, by name, with their contents. */
async function files({ name, from, format = "esm" }) {
  if (!LOADED.includes(name)) {
    const sheet = from.endsWith(".css");
    const options = { ...common, entryPoints: [join(ROOT, from)], minify: true, format };
    const { outputFiles } = await esbuild.build({ ...options, plugins: sheet ? [] : [workers, sheets] });
    return new Map([[name, Buffer.from(outputFiles[0].contents)]]);
  }
  const { core, chunks } = await loaded(from);
  const made = new Map([[name, Buffer.from(core)]]);
  for (const [chunk, text] of chunks) made.set(name.replace(/\.js$/, `.${chunk}.js`), Buffer.from(text));
  return made;
}

const bytes = (count) => `${count.toLocaleString("en")} bytes`;
const sizeOf = (made) => [...made.values()].reduce((sum, { length }) => sum + length, 0);

async function build() {
  mkdirSync(STATIC, { recursive: true });
  const kept = new Set();
  for (const target of BUNDLES) {
    const made = await files(target);
    for (const [name, code] of made) {
      kept.add(name);
      writeFileSync(join(STATIC, name), code);
      if (made.size > 1) console.log(`  ${name}: ${bytes(code.length)}`);
    }
    console.log(`${target.name}: ${bytes(sizeOf(made))} of at most ${bytes(target.limit)}`);
  }
  for (const name of readdirSync(STATIC)) if (!kept.has(name)) rmSync(join(STATIC, name));
}

async function check() {
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  for (const project of ["tsconfig.json", "test/tsconfig.json"]) {
    const { status } = spawnSync(process.execPath, [tsc, "-p", project], { cwd: ROOT, stdio: "inherit" });
    if (status !== 0) fail(`the types of ${project} don't hold`);
  }
  const kept = new Set();
  for (const target of BUNDLES) {
    const made = await files(target);
    if (sizeOf(made) > target.limit)
      fail(`${target.name} has ${bytes(sizeOf(made))}, more than the ${bytes(target.limit)} allowed`);
    for (const [name, code] of made) {
      kept.add(name);
      const file = join(STATIC, name);
      if (!existsSync(file)) fail(`${name} is missing: run \`npm run build\` and commit it`);
      if (!code.equals(readFileSync(file))) fail(`${name} is stale: run \`npm run build\` and commit it`);
    }
    console.log(`${target.name} is fresh: ${bytes(sizeOf(made))}`);
  }
  for (const name of readdirSync(STATIC)) if (!kept.has(name)) fail(`${name} is no longer built: remove it`);
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
