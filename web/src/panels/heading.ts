/** The top and the end of the page: which releases it shows, what they promise, and what may be done with it. */

import { h, type Child } from "../dom";
import type { Model, Release } from "../model";
import { caution, statement } from "./statement";

const PASSED_ON = "This file holds only what the release publishes, asks for nothing from the network, and can be passed on like the release itself.";
const FULL = "This page tells more than the release does. It is for whoever keeps the data, and not for publication.";
const LIVE = "This page talks to ODkAnon on this machine and to nobody else. It is sent releases that meet the rule above, never trips; save one to pass it on.";

/** The names of the releases, with that of all of them together where they are shown one at a time. */
export const titleOf = ({ releases, switch: all }: Model): string => [...(all === null ? [] : [all]), ...releases.map(({ name }) => name)].join(" · ");

/** The promise of each release, and what it does not promise. */
export function promises(releases: Release[]): HTMLElement[] {
  const names = new Map<string, string[]>();
  for (const { name, about } of releases) {
    const key = JSON.stringify([statement(about), caution(about)]);
    names.set(key, [...(names.get(key) ?? []), name]);
  }
  // Releases that promise the same say it once.
  return [...names].map(([key, own]) => {
    const [promise, but] = JSON.parse(key) as [string, string | null];
    return h("p", { class: "statement" }, releases.length > 1 && h("b", {}, `${own.join(", ")}: `), promise, " ", h("small", {}, but));
  });
}

export function footing({ releases, full, titles, towns }: Model, live: boolean): Child[] {
  const { version, input } = releases[0]!.about;
  const print = input?.sha256 && h("span", { class: "sha", title: "fingerprint (SHA-256) of the input" }, `Input ${input.sha256.slice(0, 16)}…`);
  return [
    h("p", {}, live ? LIVE : full ? FULL : PASSED_ON),
    h("p", {}, version ? `Made by ODkAnon ${version}. ` : "", "Base map: © OpenStreetMap contributors (ODbL), Natural Earth. ", towns.length > 0 && "Names: GeoNames, CC BY 4.0. ", print),
    titles.licence && h("p", {}, titles.licence),
  ];
}
