/** Numbers and names in the words of a transport planner. */

import type { Count } from "./model";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const three = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const exactly = new Intl.NumberFormat("en", { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });
const two = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
const tenths = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const one = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

/** A count: whole where it is whole or large, one decimal otherwise. */
export function count(value: number | null | undefined): string {
  if (value == null) return "–";
  return Number.isInteger(value) || Math.abs(value) >= 1000 ? whole.format(value) : one.format(value);
}

/** A threshold: with its decimal, however large, since it is a promise. */
export const exact = (value: number | null | undefined): string => (value == null ? "–" : one.format(value));

/** A measured quantity: three digits, or all of them before the decimal point. */
export function quantity(value: number | null | undefined): string {
  if (value == null) return "–";
  return Number.isInteger(value) || Math.abs(value) >= 1000 ? whole.format(value) : exactly.format(value);
}

/** A large number in short: 1,234 or 5.6 million. */
export function short(value: number | null | undefined): string {
  if (value == null) return "–";
  for (const [size, word] of [[1e12, "trillion"], [1e9, "billion"], [1e6, "million"]] as const) {
    if (Math.abs(value) >= size) return `${three.format(value / size)} ${word}`;
  }
  return count(value);
}

/** Keeps a number and its unit on one line. */
export const united = (number: string | number, unit: string): string => `${number}\u00a0${unit}`;

/** Every percentage of the page is made here. */
export const percentage = (number: string | number): string => united(number, "%");

export function percent(share: number | null | undefined): string {
  if (share == null) return "–";
  const value = share * 100;
  if (value > 0 && value < 0.1) return percentage("<\u00a00.1");
  if (value > 99.9 && value < 100) return percentage(">\u00a099.9");
  return percentage(value === 0 || value === 100 ? value : tenths.format(value));
}

/** The same in whole numbers; something is never nothing, and not quite all never all. */
export const wholePercent = (share: number): string =>
  percentage(share > 0 && share < 0.005 ? "<\u00a01" : share >= 0.995 && share < 1 - 1e-9 ? ">\u00a099" : Math.round(share * 100));

export const plural = (value: number, word: string, words = `${word}s`): string =>
  `${count(value)} ${value === 1 ? word : words}`;

const conjunction = new Intl.ListFormat("en-GB", { type: "conjunction" });

/** "a, b and c". */
export const listed = (parts: string[]): string => conjunction.format(parts);

/** The form of a verb that goes with a count. */
export const verb = (value: number, one: string, many: string): string => (value === 1 ? one : many);

export const measureName: Record<Count, string> = {
  trips: "trips",
  weight: "weighted trips",
  persons: "persons",
  households: "households",
};
export const measureTitle: Record<Count, string> = {
  trips: "Trips observed",
  weight: "Weighted trips (population)",
  persons: "Different persons",
  households: "Different households",
};

export const amount = (value: number | null | undefined, measure: Count): string =>
  `${short(value)} ${value === 1 && measure !== "weight" ? measureName[measure].slice(0, -1) : measureName[measure]}`;

export function area(squareKilometres: number): string {
  return united((squareKilometres < 100 ? two : whole).format(squareKilometres), "km²");
}
