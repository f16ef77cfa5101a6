/** What the reader has chosen, and telling everyone when it changes. */

export interface State {
  /** The places asked about, by id; null is anywhere. */
  from: string | null;
  to: string | null;
  /** The level of detail that the chosen places belong to; null follows the zoom. */
  level: string | null;
  /** Values of attributes, such as mode: car. */
  only: Readonly<Record<string, string>>;
  view: "flows" | "matrix" | "change";
  /** What is counted, where there are weights. */
  count: "weight" | "trips";
  /** Of several releases, the one that is shown. */
  release: number;
  /** Whether areas are outlined that are only roughly known. */
  rough: boolean;
  language: string;
  theme: "auto" | "light" | "dark";
}

type Listener = (state: State, changed: Set<keyof State>) => void;

export class Store {
  private readonly listeners: Listener[] = [];

  constructor(public state: State) {}

  set(change: Partial<State>): void {
    const changed = new Set((Object.keys(change) as (keyof State)[]).filter((key) => change[key] !== this.state[key]));
    if (!changed.size) return;
    this.state = { ...this.state, ...change };
    for (const listener of this.listeners) listener(this.state, changed);
  }

  listen(listener: Listener): void {
    this.listeners.push(listener);
  }
}

export interface View {
  longitude: number;
  latitude: number;
  zoom: number;
}

const VIEWS: readonly string[] = ["flows", "matrix", "change"];
const THEMES: readonly string[] = ["light", "dark"];

/** The choices as the end of an address; what is as it starts is left out. */
export function toHash(state: State, view: View | null, first: State): string {
  const found = new URLSearchParams();
  for (const key of ["from", "to", "level"] as const) if (state[key] !== null) found.set(key, state[key]);
  for (const [name, value] of Object.entries(state.only)) found.append("only", `${name}:${value}`);
  for (const key of ["count", "view", "language", "theme"] as const) if (state[key] !== first[key]) found.set(key, state[key]);
  if (state.release) found.set("release", String(state.release));
  if (state.rough) found.set("rough", "1");
  if (view) found.set("at", [view.longitude.toFixed(4), view.latitude.toFixed(4), view.zoom.toFixed(2)].join(","));
  return found.toString();
}

/** The choices that an address names, and where the map is; all else is ignored. */
export function fromHash(hash: string): { state: Partial<State>; view: View | null } {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const state: Partial<State> = {};
  for (const key of ["from", "to", "level"] as const) if (given.has(key)) state[key] = given.get(key);
  const pairs = given.getAll("only").map((one) => one.split(/:(.*)/s).slice(0, 2) as [string, string]);
  if (pairs.length) state.only = Object.fromEntries(pairs);
  const [view, theme, language] = [given.get("view"), given.get("theme"), given.get("language")];
  if (view && VIEWS.includes(view)) state.view = view as State["view"];
  if (theme && THEMES.includes(theme)) state.theme = theme as State["theme"];
  if (language) state.language = language;
  if (/^\d+$/.test(given.get("release") ?? "")) state.release = Number(given.get("release"));
  if (given.get("rough")) state.rough = true;
  const count = given.get("count");
  if (count === "trips" || count === "weight") state.count = count;
  const at = given.get("at")?.split(",").map(Number) ?? [];
  const [longitude, latitude, zoom] = at;
  return { state, view: at.length === 3 && at.every(Number.isFinite) ? { longitude: longitude!, latitude: latitude!, zoom: zoom! } : null };
}
