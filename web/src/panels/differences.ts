/** Two releases: exactly which zones they do not share. */

import { areNested, comparable } from "../changes";
import { card, h, table } from "../dom";
import { difference, flowChanges } from "../compare";
import { axisName, count, plural } from "../format";
import { AXES, type Release } from "../model";
import type { Store } from "../state";

export function differences(releases: Release[], store: Store): HTMLElement | null {
  const [first, second] = releases;
  // Where zones lie in each other, which of them a release needed says little; what changed is on the map.
  if (releases.length !== 2 || !first || !second || comparable(releases)) return null;
  const parts = AXES.map((axis) => {
    const only = difference(first, second, axis);
    const shared = first[axis].id.length - only[0].length;
    const sides = [first, second].map((release, side) =>
      h(
        "details",
        { "data-only": side, "data-axis": axis },
        h("summary", {}, h("i", { class: `only${side}` }), `${plural(only[side]!.length, "zone")} only in ${release.name}`),
        h(
          "ul",
          { class: "ids" },
          ...only[side]!.map((id) =>
            h("li", {}, h("button", { type: "button", class: "link code", onclick: () => store.set({ selected: { axis, id } }) }, id)),
          ),
        ),
      ),
    );
    const same = !only[0].length && !only[1].length;
    const text = same ? `The same ${plural(shared, "zone")} in both.` : `${plural(shared, "zone")} in both.`;
    return h("div", {}, h("h3", {}, `${axisName[axis]} zones`), h("p", {}, text), ...(same ? [] : sides));
  });
  return card(
    "What differs",
    "differences",
    h("p", { class: "note" }, "Protecting different things gives different zones. A zone differs if the other release does not have exactly this zone: it is merged into a coarser one there, or split into finer ones."),
    h("div", { class: "pair" }, ...parts),
    changedFlows(first, second),
  );
}

const FLOWS = 200;

/** The flows that changed most, with both numbers' difference and whether one of them is not listed. */
function changedFlows(first: Release, second: Release): HTMLElement | null {
  const found = flowChanges(first, second, "trips");
  const shared = found.filter(({ kind }) => kind === "both").length;
  // Releases on different zones share next to no flows, and nested rows do not compare: there is nothing to subtract.
  if (shared < found.length / 4 || areNested([first, second])) return null;
  const rows = found.slice(0, FLOWS).map((one) => ({
    label: `${one.origin} → ${one.destination}`,
    cells: [one.by === 0 ? "0" : `${one.by > 0 ? "+" : "−"}${count(Math.abs(one.by))}`, WORDS[one.kind]],
  }));
  const told = found.length > FLOWS ? `The ${FLOWS} largest of ${count(found.length)} changes` : `All ${plural(found.length, "change")}`;
  return h(
    "details",
    { class: "flowchanges" },
    h("summary", {}, `How the flows changed: ${plural(shared, "flow")} in both, ${count(found.filter(({ kind }) => kind === "new").length)} only in ${second.name}, ${count(found.filter(({ kind }) => kind === "gone").length)} only in ${first.name}`),
    h("p", { class: "note" }, `${told}, ${second.name} minus ${first.name}. A flow that one release does not list had no trips there, or too few to be shown.`),
    table(["flow", "trips", ""], rows, "How the flows changed"),
  );
}

const WORDS = { both: "listed in both", new: "newly listed", gone: "no longer listed" };
