/** Colours that stay apart for colour-blind eyes, in light and in dark. */

export type Colour = [number, number, number, number];

const hex = (text: string, alpha = 255): Colour => [
  parseInt(text.slice(1, 3), 16),
  parseInt(text.slice(3, 5), 16),
  parseInt(text.slice(5, 7), 16),
  alpha,
];

export const css = ([r, g, b, a]: Colour): string => `rgb(${r} ${g} ${b} / ${Math.round((a / 255) * 100)}%)`;

export interface Palette {
  dark: boolean;
  outline: Colour;
  selected: Colour;
  /** Faint to strong. */
  flows: Colour[];
  flowEdge: Colour;
  /** One hue for places, from transparent. */
  cell: Colour;
  edge: Colour;
  stay: Colour;
  land: Colour;
  /** As `--sea` of the style. */
  sea: Colour;
  border: Colour;
  beneath: Colour;
  /** Less and more: blue and vermilion, as in the paper. */
  only: [Colour, Colour];
}

// OrRd of ColorBrewer; what is small is pale and lets through what lies below.
const FLOWS = ["#fdc58a18", "#fc8d5960", "#d7301fd0", "#7f0000f0"];
const DARK_FLOWS = ["#6b331520", "#b4490f78", "#fd8d3cd8", "#fff0d9f5"];

const tinted = (text: string): Colour => hex(text.slice(0, 7), parseInt(text.slice(7), 16));

export const LIGHT: Palette = {
  dark: false,
  outline: hex("#20303f", 170),
  selected: hex("#111111"),
  flows: FLOWS.map(tinted),
  flowEdge: hex("#ffffff", 225),
  cell: hex("#146e96"),
  edge: hex("#146e96", 34),
  stay: hex("#ffd9c2", 240),
  land: hex("#fafaf7"),
  sea: hex("#d6e4ec"),
  border: hex("#a9b2bb", 210),
  beneath: hex("#8f8a7c", 120),
  only: [hex("#0072b2", 230), hex("#d55e00", 230)],
};

export const DARK: Palette = {
  dark: true,
  outline: hex("#dfe8f2", 140),
  selected: hex("#ffffff"),
  flows: DARK_FLOWS.map(tinted),
  flowEdge: hex("#12161b", 220),
  cell: hex("#3fa6c9"),
  edge: hex("#3fa6c9", 40),
  stay: hex("#5a1f08", 240),
  land: hex("#1d232b"),
  sea: hex("#12161c"),
  border: hex("#4b5663", 220),
  beneath: hex("#8b93a0", 110),
  only: [hex("#4db4f0", 230), hex("#ff8a3c", 230)],
};

/** The colour at a share of the way along several. */
export function mix(colours: Colour[], share: number): Colour {
  const along = Math.min(1, Math.max(0, share)) * (colours.length - 1);
  const first = Math.min(colours.length - 2, Math.floor(along));
  return colours[first]!.map((from, i) => Math.round(from + (along - first) * (colours[first + 1]![i]! - from))) as Colour;
}

/** Rounds to 1, 2 or 5 times a power of ten. */
export function nice(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].reduce((a, b) => (Math.abs(Math.log((b * power) / value)) < Math.abs(Math.log((a * power) / value)) ? b : a)) * power;
}
