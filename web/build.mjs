// Bundles the sources into one self-contained page: `node build.mjs OUTPUT_FOLDER`.
// The content policy names the hash of the one script and the one style sheet, so nothing else can run.
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
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
  const [output] = Object.values(result.metafile.outputs);
  const used = Object.entries(output.inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  return { text: result.outputFiles[0].text.trimEnd(), inputs: used.map(([name]) => name) };
}

const packages = (inputs) => {
  const folders = inputs.map((name) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(name)?.[1]);
  return [...new Set(folders)].filter(Boolean).sort();
};

/** The licences of everything that is inside the page, each text once under the packages that it is for. */
async function licences(folders) {
  const byText = new Map();
  for (const folder of folders) {
    const about = JSON.parse(await readFile(path.join(here, folder, "package.json"), "utf8"));
    const text = await licenceText(folder, about);
    byText.set(text, [...(byText.get(text) ?? []), `${about.name} ${about.version} (${about.license})`]);
  }
  const blocks = [...byText].map(([text, names]) => `${names.join("\n")}\n\n${text}`);
  // Inside a comment nothing may look like its end.
  return blocks.join(`\n\n${"=".repeat(60)}\n\n`).replaceAll("-->", "-- >").replaceAll("--!>", "--! >");
}

async function licenceText(folder, about) {
  const names = (await readdir(path.join(here, folder))).filter((name) => /^(licen[cs]e|notice|copying)/i.test(name)).sort();
  if (!names.some((name) => !/^notice/i.test(name))) throw new Error(`${about.name} comes without the text of its licence`);
  const texts = await Promise.all(names.map((name) => readFile(path.join(here, folder, name), "utf8")));
  return texts.map((text) => text.replaceAll("\r\n", "\n").trim()).join("\n\n");
}

const script = await bundle("main.ts");
const style = await bundle("style.css");
const fill = {
  STAMP: stamp,
  LICENCES: await licences([...packages([...script.inputs, ...style.inputs]), "node_modules/world-atlas", "node_modules/@geo-maps/earth-lands-100m"]),
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
