/** Long columns of the model as `src/odkanon/publish/report/packing.py` packs them, back as numbers and names. */

/** Steps from number to number, or numbers in single precision; deflated. */
export interface PackedColumn {
  of: "steps" | "single";
  count: number;
  /** How many of what is counted make one. */
  per: number;
  steps: string;
}

/** Names that only count. */
export interface PackedNames {
  prefix: string;
  digits: number;
  count: number;
}

export type Column = ArrayLike<number>;

async function inflate(text: string): Promise<Uint8Array> {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Seven bits a byte, the last byte of a number below 128; the lowest bit of a number is its sign. */
function readSteps(bytes: Uint8Array, count: number, per: number): Column {
  const found = new Float64Array(count);
  let [at, value, most] = [0, 0, 0];
  for (let i = 0; i < count; i++) {
    let [step, place] = [0, 1];
    for (; bytes[at]! > 127; at++, place *= 128) step += (bytes[at]! & 127) * place;
    step += bytes[at++]! * place;
    value += step % 2 ? -(step + 1) / 2 : step / 2;
    found[i] = value / per;
    most = Math.max(most, Math.abs(value));
  }
  return per === 1 && most < 2 ** 31 ? Int32Array.from(found) : found;
}

async function readColumn({ of, count, per, steps }: PackedColumn): Promise<Column> {
  const bytes = await inflate(steps);
  return of === "single" ? new Float32Array(bytes.buffer, 0, count) : readSteps(bytes, count, per);
}

const readNames = ({ prefix, digits, count }: PackedNames): string[] =>
  Array.from({ length: count }, (_, number) => prefix + String(number).padStart(digits, "0"));

/** Whatever is packed among the columns of a part of the model, as plain or typed arrays; all else stays as it is. */
async function unpackPart<T>(part: T): Promise<T> {
  if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
  if ("steps" in part && "per" in part) return (await readColumn(part as unknown as PackedColumn)) as T;
  if ("prefix" in part && "digits" in part) return readNames(part as unknown as PackedNames) as T;
  const entries = Object.entries(part).map(async ([name, value]) => [name, await unpackPart(value)] as const);
  return Object.fromEntries(await Promise.all(entries)) as T;
}

/** A model whose flows and levels have columns that can be read. */
export async function unpackColumns<T extends { releases: { flows: unknown }[]; levels?: { tables: unknown[] }[] }>(model: T): Promise<T> {
  const releases = model.releases.map(async (release) => ({ ...release, flows: await unpackPart(release.flows) }));
  const levels = (model.levels ?? []).map(async (level) => ({ ...level, tables: await Promise.all(level.tables.map(unpackPart)) }));
  return { ...model, releases: await Promise.all(releases), levels: await Promise.all(levels) };
}
