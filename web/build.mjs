// Bundles the sources into one self-contained page: `node build.mjs OUTPUT_FOLDER`.
// The content policy names the hash of the one script and the one style sheet, so nothing else can run.
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { packWorld } from "./base.mjs";
import { packNames } from "./names.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const output = path.resolve(process.argv[2] ?? path.join(here, "../src/odkanon/publish/report"));
const stamp = process.argv[3] ?? "unstamped";

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

async function bundle(entry) {
  const result = await build({
    entryPoints: [path.join(here, "src", entry)],
    absWorkingDir: here,
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: "iife",
    target: "es2022",
    legalComments: "none",
    define: { "process.env.NODE_ENV": '"production"' },
    outdir: "out",
  });
  return { text: result.outputFiles[0].text.trimEnd(), inputs: Object.keys(result.metafile.inputs) };
}

/** One line for each bundled package, as its licence asks. */
async function credits(inputs) {
  const folders = inputs.map((name) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(name)?.[1]);
  const lines = [];
  for (const folder of [...new Set(folders)].filter(Boolean).sort()) {
    const about = JSON.parse(await readFile(path.join(here, folder, "package.json"), "utf8"));
    lines.push(`${about.name} ${about.version} (${about.license ?? "see its repository"})`);
  }
  return lines.join("\n");
}

const script = await bundle("main.ts");
const style = await bundle("style.css");
const fill = {
  STAMP: stamp,
  CREDITS: await credits(script.inputs),
  SCRIPT_HASH: hash(script.text),
  STYLE_HASH: hash(style.text),
  STYLE: style.text,
  SCRIPT: script.text,
};
const template = await readFile(path.join(here, "src/template.html"), "utf8");
const page = template.replace(/\{\{([A-Z_]+)\}\}/g, (_, name) => fill[name]);

await mkdir(output, { recursive: true });
await writeFile(path.join(output, "world.bin.gz"), await packWorld());
await writeFile(path.join(output, "names.bin.gz"), packNames());
await writeFile(path.join(output, "page.html"), page);
console.log(`page.html: ${Math.round(page.length / 1024)} kB`);
