// Bundles each test with esbuild and runs them all with node's own test runner.
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const output = await mkdtemp(path.join(tmpdir(), "odkanon-web-"));
const names = (await readdir(here)).filter((name) => name.endsWith(".test.ts"));
await build({
  entryPoints: names.map((name) => path.join(here, name)),
  bundle: true,
  platform: "node",
  format: "esm",
  outdir: output,
  outExtension: { ".js": ".mjs" },
  sourcemap: "inline",
});
const files = (await readdir(output)).map((name) => path.join(output, name));
const { status } = spawnSync(process.execPath, ["--test", "--enable-source-maps", ...files], { stdio: "inherit" });
await rm(output, { recursive: true });
process.exit(status ?? 1);
