/** A complete list that can be sorted and searched; long ones are shown in part until asked for. */

import { h, replace, type Child } from "../dom";
import { area, count, percent, short } from "../format";
import type { Measure } from "../model";
import { isCell, plain } from "../names";

export interface Entry {
  id: string;
  /** Where that is, in words. */
  near: string | null;
  mass: number;
  /** Whether it comes before larger ones, such as a change that is sure. */
  first?: boolean;
  share: number;
  /** Square kilometres; 0 where unknown. */
  area: number;
  /** What to say instead of the mass, and of its share. */
  text?: [string, string];
  /** More than a number, such as that it changed. */
  note?: Child;
}

type Column = "id" | "mass" | "area";

/** What the reader did to a list, kept while it is drawn anew. */
export class Memory {
  sort: Column = "mass";
  down = true;
  all = false;
  text = "";
}

const FEW = 100;

export interface Listed {
  what: string;
  /** What the numbers are, if not trips. */
  counted?: string | undefined;
  /** Whether sizes differ and tell something. */
  sized?: boolean;
  measure: Measure;
  entries: Entry[];
  /** Null: the entries cannot be chosen. */
  pick: ((id: string) => void) | null;
  /** Called with what was typed when Enter is pressed; returns what to answer, or null if it acted. */
  find: (text: string) => string | null;
}

const compare: Record<Column, (a: Entry, b: Entry) => number> = {
  id: (a, b) => (a.near ?? "").localeCompare(b.near ?? "") || a.id.localeCompare(b.id),
  mass: (a, b) => Number(a.first ?? false) - Number(b.first ?? false) || a.mass - b.mass,
  area: (a, b) => a.area - b.area,
};

export function listing(listed: Listed, memory: Memory): HTMLElement {
  const body = h("tbody", {});
  const more = h("button", { type: "button", onclick: () => show(true) });
  const hint = h("p", { class: "note", role: "status" });
  const heads = header(listed, memory, () => show(memory.all));
  const show = (all: boolean): void => {
    memory.all = all;
    const wanted = plain(memory.text);
    const fitting = listed.entries.filter(({ id, near }) => !wanted || plain(id).includes(wanted) || plain(near ?? "").includes(wanted));
    const sorted = fitting.sort((a, b) => compare[memory.sort](a, b) * (memory.down ? -1 : 1) || (a.id < b.id ? -1 : 1));
    const shown = all ? sorted : sorted.slice(0, FEW);
    replace(body, ...shown.map((entry) => line(entry, listed)));
    more.hidden = shown.length === sorted.length;
    more.textContent = `Show all ${count(sorted.length)}`;
    hint.textContent = wanted ? `${count(sorted.length)} of ${count(listed.entries.length)}` : "";
    heads.refresh();
  };
  const input = h("input", { type: "search", value: memory.text, "aria-label": "Find by name or id", placeholder: "Find by name or id", spellcheck: "false" });
  input.addEventListener("input", () => {
    memory.text = input.value;
    show(false);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !input.value.trim()) return;
    const answer = listed.find(input.value.trim());
    if (answer) hint.textContent = answer;
  });
  show(memory.all);
  return h("div", { class: "listing" }, h("div", { class: "search" }, input), hint, h("table", { class: "zonelist" }, h("caption", { class: "hidden" }, listed.what), heads.element, body), more);
}

function header({ what, counted, sized = true, measure }: Listed, memory: Memory, show: () => void): { element: HTMLElement; refresh: () => void } {
  const columns: [Column, string][] = [["id", what], ["mass", counted ?? (measure === "weight" ? "weighted trips" : "trips")], ...(sized ? [["area", "size"] as [Column, string]] : [])];
  const cells = columns.map(([column, title]) => {
    const turn = (): void => {
      memory.down = memory.sort === column ? !memory.down : column !== "id";
      memory.sort = column;
      show();
    };
    return { column, cell: h("th", { scope: "col" }, h("button", { type: "button", class: "sort", onclick: turn }, title)) };
  });
  const refresh = (): void => {
    for (const { column, cell } of cells) {
      if (column === memory.sort) cell.setAttribute("aria-sort", memory.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
  };
  return { element: h("thead", {}, h("tr", {}, ...cells.map(({ cell }) => cell))), refresh };
}

function line({ id, near, mass, share, area: size, text, note }: Entry, { measure, pick, sized = true }: Listed): HTMLElement {
  const [main, more] = text ?? [measure === "weight" ? short(mass) : count(mass), percent(share)];
  // A code says nothing to a reader, a name does; an id of the user's own says more than a town nearby.
  const named = near !== null && isCell(id);
  const words = named ? [near, h("small", {}, id)] : [id];
  const name = pick ? h("button", { type: "button", class: named ? "link" : "link code", "data-id": id, onclick: () => pick(id) }, ...words) : h("span", { class: named ? "" : "code" }, ...words);
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, name, near !== null && !named && h("small", {}, `near ${near}`)),
    h("td", {}, main, h("small", {}, more), note),
    sized && h("td", {}, size > 0 ? area(size) : "–"),
  );
}
