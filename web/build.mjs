// Build the console into the Python package, or with --check compare a fresh build with what is there.
import { build } from "esbuild";
import { readFile, readdir, rm, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";

const here = new URL(".", import.meta.url);
const target = new URL("../src/sharewell/service/http/static/", here);
const LIMIT = 300_000;

/** The licences of the packages that the bundle contains, from their own files. */
async function licences() {
  const lock = JSON.parse(await readFile(new URL("package-lock.json", here), "utf8"));
  const texts = ["The console contains these packages.\n"];
  for (const [path, found] of Object.entries(lock.packages)) {
    if (!path || found.dev) continue;
    const name = path.replace("node_modules/", "");
    const text = await readFile(new URL(`${path}/LICENSE`, here), "utf8");
    texts.push(`${name} ${found.version}\n\n${text.trim()}\n`);
  }
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}

const built = await build({
  absWorkingDir: here.pathname,
  entryPoints: { app: "src/main.jsx" },
  outdir: "out",
  bundle: true,
  // The sign-in form needs little; the page of a role and the editor come after it.
  splitting: true,
  chunkNames: "part-[hash]",
  write: false,
  metafile: true,
  minify: true,
  format: "esm",
  target: ["chrome109", "firefox115", "safari16.4"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
});
const files = Object.fromEntries(built.outputFiles.map((file) => [file.path.split("/").pop(), file.text]));

/** What the first script imports at once: fetched with it, not after it. */
function imported(path, found = new Set()) {
  for (const each of built.metafile.outputs[path].imports) {
    if (each.kind !== "import-statement" || found.has(each.path)) continue;
    found.add(each.path);
    imported(each.path, found);
  }
  return found;
}
const preloads = ["out/app.js", ...imported("out/app.js")].map((path) => `<link rel="modulepreload" href="console/{version}/${path.slice(4)}">`);
files["index.html"] = (await readFile(new URL("src/index.html", here), "utf8")).replace("{preloads}", preloads.join("\n"));
files["icon.svg"] = await readFile(new URL("src/icon.svg", here), "utf8");
files["LICENSES.txt"] = await licences();

const check = process.argv.includes("--check");
const stale = (await readdir(target)).filter((name) => !(name in files));
if (!check) for (const name of stale.splice(0)) await rm(new URL(name, target));
for (const [name, text] of Object.entries(files)) {
  const path = new URL(name, target);
  const before = await readFile(path, "utf8").catch(() => null);
  if (before !== text) stale.push(name);
  if (!check) await writeFile(path, text);
}
const sizeOf = (name) => gzipSync(files[name], { level: 9 }).length;
const size = Object.keys(files).filter((name) => /\.(js|css)$/.test(name)).reduce((sum, name) => sum + sizeOf(name), 0);
const first = ["app.css", "app.js", ...[...imported("out/app.js")].map((path) => path.slice(4))].reduce((sum, name) => sum + sizeOf(name), 0);
console.log(`${Math.round(size / 1000)} kB gzip, of which ${Math.round(first / 1000)} kB to sign in`);
if (size > LIMIT) throw new Error(`The bundle is larger than ${LIMIT} bytes.`);
if (check && stale.length) {
  console.error(`Not as built: ${stale.join(", ")}. Run make web.`);
  process.exit(1);
}
