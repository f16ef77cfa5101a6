/** The words and number formats of the language that the reader chose. */

import { en, type Told, type Words } from "./en";
import { es } from "./es";
import { fr } from "./fr";

export type { Told, Words };

export const LANGUAGES: Record<string, Words> = { en, es, fr };

export interface Numbers {
  trips: number;
  low: number;
  high: number;
  interval_low: number;
  interval_high: number;
  /** Of a weight: the trips that it is the weight of. */
  asked?: Numbers;
}

/** The share of a number that is certain. */
export const certainShare = (numbers: Numbers): number => {
  const { low, trips } = numbers.asked ?? numbers;
  return Math.min(1, low / Math.max(trips, 1e-9));
};

/** A share is told only where its interval is narrower than half of it. */
const WIDEST = 0.5;

export class Speech {
  readonly words: Words;
  private readonly whole: Intl.NumberFormat;
  private readonly one: Intl.NumberFormat;
  private readonly two: Intl.NumberFormat;
  private readonly three: Intl.NumberFormat;
  private readonly list: Intl.ListFormat;

  constructor(readonly language: string) {
    this.words = LANGUAGES[language] ?? en;
    this.whole = new Intl.NumberFormat(language, { maximumFractionDigits: 0, useGrouping: true });
    this.one = new Intl.NumberFormat(language, { maximumFractionDigits: 1 });
    this.three = new Intl.NumberFormat(language, { maximumSignificantDigits: 3 });
    this.two = new Intl.NumberFormat(language, { maximumSignificantDigits: 2 });
    this.list = new Intl.ListFormat(language === "en" ? "en-GB" : language, { type: "conjunction" });
  }

  number = (value: number): string => this.whole.format(value);
  decimal = (value: number): string => this.one.format(value);
  /** A large number in three digits. */
  rough = (value: number): string => this.three.format(value);
  listed = (parts: string[]): string => this.list.format(parts);
  area = (km2: number): string => `${(km2 < 100 ? this.two : this.whole).format(km2)}\u00a0km²`;
  percent = (share: number): string => `${share > 0 && share < 0.005 ? "<\u00a01" : share >= 0.995 && share < 1 ? ">\u00a099" : Math.round(share * 100)}\u00a0%`;

  /** An estimate in as many digits as its interval allows. */
  told(numbers: Numbers): Told {
    const { trips, interval_low: low, interval_high: high } = numbers;
    const exact = numbers.low === numbers.high;
    if (high - low < 1) return { about: numbers.asked ? this.rough(trips) : this.number(trips), between: "", exact };
    const unit = unitOf(high - low);
    const [from, to] = [Math.floor(low / unit) * unit, Math.ceil(high / unit) * unit];
    return { about: this.number(Math.round(trips / unit) * unit || trips), between: this.words.range(this.number(Math.max(0, from)), this.number(to)), exact };
  }

  /** The short form for lists. */
  short(numbers: Numbers): string {
    return this.told(numbers).about;
  }

  /** A share of a total, or null where that would pretend to know more than is known. */
  share(part: Numbers, total: Numbers): string | null {
    if (part.interval_high - part.interval_low > WIDEST * part.trips || total.trips <= 0) return null;
    return this.percent(Math.min(1, part.trips / total.trips));
  }
}

/** A tenth of an interval, as 1 or 5 times a power of ten. */
function unitOf(width: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, width / 10)));
  return width / 10 >= 5 * power ? 5 * power : power;
}

/** One set of words for how well something is known: by the width of its interval. */
export function knownAs({ trips, interval_low: low, interval_high: high }: Numbers): "sharp" | "medium" | "blurred" {
  const width = (high - low) / Math.max(trips, 1);
  return width <= 0.25 ? "sharp" : width <= 0.75 ? "medium" : "blurred";
}
