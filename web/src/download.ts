/** What is seen, as files: a table of flows, and a picture of the map. */

import { h } from "./dom";
import type { Certainty } from "./ask";
import type { Written } from "./map/labels";
import type { Numbers } from "./words";

export interface Row {
  from: [id: string, name: string];
  to: [id: string, name: string];
  numbers: Numbers;
  /** In a map of change, what it was before. */
  before?: Numbers;
  certainty?: Certainty;
}

const COLUMNS = ["from", "from_name", "to", "to_name", "trips", "interval_low", "interval_high", "low", "high"];

const WEIGHT = ["weight", "weight_low", "weight_high"];

/** Text in quotes where it needs them; a name that a spreadsheet would take for a formula is kept text. */
function cell(value: string | number): string {
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** In the order of the columns; an upper bound that is not known is left empty. */
const counts = (numbers: Numbers): (string | number)[] => {
  const { trips, interval_low, interval_high, low, high } = numbers.asked ?? numbers;
  const weight = numbers.asked ? [numbers.trips, numbers.interval_low, numbers.interval_high] : [];
  return [trips, interval_low, interval_high, low, Number.isFinite(high) ? high : "", ...weight];
};

export function flowsAsCsv(rows: Row[], only: Readonly<Record<string, string>>): string {
  const chosen = Object.entries(only);
  const columns = [...COLUMNS, ...(rows.some(({ numbers }) => numbers.asked) ? WEIGHT : [])];
  const head = [...columns, ...chosen.map(([name]) => name)];
  if (rows.some(({ before }) => before)) head.push(...columns.slice(4).map((name) => `before_${name}`), "certainty");
  const lines = rows.map(({ from, to, numbers: own, before, certainty }) => [...from, ...to, ...counts(own), ...chosen.map(([, value]) => value), ...(before ? [...counts(before), certainty ?? ""] : [])]);
  return [head, ...lines].map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
}

export function download(content: Blob, name: string): void {
  const link = h("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export interface Caption {
  title: string;
  lines: string[];
  colours: { ink: string; card: string; sea: string };
  widths: { text: string; width: number }[];
}

const FONT = '"Noto Sans", system-ui, sans-serif';
const HEAD = 92;

/** The map as it is on the screen, with its names, under a title and above the source. */
export function pictureOf(map: HTMLCanvasElement | null, frame: HTMLElement, names: Written[], { title, lines, colours, widths }: Caption): HTMLCanvasElement {
  const scale = map ? map.width / frame.clientWidth : 1;
  const picture = h("canvas", { width: Math.round(frame.clientWidth * scale), height: Math.round((frame.clientHeight + HEAD) * scale) });
  const context = picture.getContext("2d")!;
  context.scale(scale, scale);
  context.fillStyle = colours.sea;
  context.fillRect(0, 0, frame.clientWidth, frame.clientHeight + HEAD);
  if (map) context.drawImage(map, 0, HEAD, frame.clientWidth, frame.clientHeight);
  context.fillStyle = colours.card;
  context.fillRect(0, 0, frame.clientWidth, HEAD);
  context.fillStyle = colours.ink;
  context.font = `700 22px ${FONT}`;
  context.fillText(title, 16, 30);
  context.font = `14px ${FONT}`;
  lines.forEach((line, i) => context.fillText(line, 16, 54 + 20 * i, frame.clientWidth - 32));
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const { x, y, text, kind } of names) {
    context.font = `${kind === "chosen" ? 700 : 600} ${kind === "chosen" ? 15 : 12}px ${FONT}`;
    context.lineWidth = 3;
    context.strokeStyle = colours.card;
    context.strokeText(text, x, y + HEAD);
    context.fillText(text, x, y + HEAD);
  }
  context.textAlign = "left";
  context.strokeStyle = colours.ink;
  widths.forEach(({ text, width }, i) => {
    const y = HEAD + 22 + 20 * i;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(frame.clientWidth - 110, y);
    context.lineTo(frame.clientWidth - 80, y);
    context.stroke();
    context.font = `12px ${FONT}`;
    context.fillText(text, frame.clientWidth - 72, y);
  });
  return picture;
}
