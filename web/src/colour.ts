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
  /** From little to much: lightness alone tells the order, so hue blindness does not matter. */
  ramp: Colour[];
  empty: Colour;
  outline: Colour;
  selected: Colour;
  flow: Colour;
  flowEdge: Colour;
  land: Colour;
  border: Colour;
  beneath: Colour;
  common: Colour;
  /** Zones that only the first, only the second release has: blue and vermilion, as in the paper. */
  only: [Colour, Colour];
  /** From much less over no change to much more. */
  change: Colour[];
  fresh: Colour;
  gone: Colour;
}

// YlGnBu of ColorBrewer, without its palest step; dark runs the other way, so that much always stands out.
const RAMP = ["#edf8b1", "#c7e9b4", "#7fcdbb", "#41b6c4", "#1d91c0", "#225ea8", "#0c2c84"];
const DARK_RAMP = ["#173a5e", "#1f5a86", "#2a7ea6", "#41a3b5", "#74c6b6", "#b5e3ae", "#f3f9b5"];

// Blue for less, orange for more, as for the zones of two releases.
const LIGHT_CHANGE = ["#0b5a94", "#4f9ccb", "#b4d4e8", "#eceff1", "#f6cfae", "#e58a3f", "#b04a00"];
const DARK_CHANGE = ["#5fc0ff", "#3683b5", "#27506d", "#3a414a", "#6d4526", "#b96a24", "#ffa04d"];

export const LIGHT: Palette = {
  dark: false,
  ramp: RAMP.map((colour) => hex(colour, 225)),
  empty: hex("#8a94a3", 26),
  outline: hex("#20303f", 150),
  selected: hex("#111111"),
  flow: hex("#c2410c", 215),
  flowEdge: hex("#ffffff", 235),
  land: hex("#f6f5f1"),
  border: hex("#b9b4a8"),
  beneath: hex("#8f8a7c", 160),
  common: hex("#9aa5b1", 90),
  only: [hex("#0072b2", 190), hex("#d55e00", 190)],
  change: LIGHT_CHANGE.map((colour) => hex(colour, 235)),
  fresh: hex("#009e73", 220),
  gone: hex("#8c4a7a", 200),
};

export const DARK: Palette = {
  dark: true,
  ramp: DARK_RAMP.map((colour) => hex(colour, 225)),
  empty: hex("#9fb0c3", 24),
  outline: hex("#dfe8f2", 120),
  selected: hex("#ffffff"),
  flow: hex("#ff5436", 235),
  flowEdge: hex("#1a1207", 235),
  land: hex("#22272f"),
  border: hex("#4b5360"),
  beneath: hex("#8b93a0", 150),
  common: hex("#7c8896", 80),
  only: [hex("#4db4f0", 200), hex("#ff8a3c", 200)],
  change: DARK_CHANGE.map((colour) => hex(colour, 235)),
  fresh: hex("#2fd3a2", 220),
  gone: hex("#d79ac6", 200),
};

/** Rounds to 1, 1.5, 2, 3, 5 or 7 times a power of ten. */
function nice(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const steps = [1, 1.5, 2, 3, 5, 7, 10];
  const scaled = value / power;
  const best = steps.reduce((a, b) => (Math.abs(Math.log(b / scaled)) < Math.abs(Math.log(a / scaled)) ? b : a));
  return best * power;
}

/**
 * Round boundaries between at most `bins` shades, taken from the quantiles of the values so that every shade is
 * used; fewer where the values do not differ enough.
 */
export function breaks(values: ArrayLike<number>, bins: number): number[] {
  const sorted = Float64Array.from(values).filter((value) => value > 0).sort();
  const found: number[] = [];
  for (let i = 1; i < bins; i++) {
    const value = sorted[Math.floor((i * sorted.length) / bins)];
    if (value === undefined) break;
    const bound = nice(value);
    if (bound > sorted[0]! && bound <= sorted.at(-1)! && bound > (found.at(-1) ?? 0)) found.push(bound);
  }
  return found;
}

export interface Scale {
  breaks: number[];
  shade: (value: number) => Colour;
  shades: Colour[];
}

export function makeScale(values: ArrayLike<number>, palette: Palette): Scale {
  const bounds = breaks(values, palette.ramp.length);
  const last = palette.ramp.length - 1;
  const shades = [...bounds, Infinity].map(
    (_, i) => palette.ramp[bounds.length ? Math.round((i * last) / bounds.length) : Math.ceil(last / 2)]!,
  );
  const shade = (value: number): Colour => {
    let bin = 0;
    while (bin < bounds.length && value >= bounds[bin]!) bin++;
    return shades[bin]!;
  };
  return { breaks: bounds, shade, shades };
}

/** One scale for less and more: as far from nothing on either side means as much. */
export function makeDiverging(values: ArrayLike<number>, palette: Palette): Scale {
  const middle = palette.change.length >> 1;
  const bounds = breaks(Float64Array.from(values, Math.abs), middle);
  const shade = (value: number): Colour => {
    if (!value) return palette.change[middle]!;
    const steps = 1 + bounds.filter((bound) => Math.abs(value) >= bound).length;
    return palette.change[middle + Math.sign(value) * steps]!;
  };
  return { breaks: bounds, shade, shades: palette.change.slice(middle - bounds.length - 1, middle + bounds.length + 2) };
}
