/** Two releases: exactly which zones they do not share. */

import { card, h } from "../dom";
import { difference } from "../compare";
import { axisName, plural } from "../format";
import { AXES, type Release } from "../model";
import type { Store } from "../state";

export function differences(releases: Release[], store: Store): HTMLElement | null {
  const [first, second] = releases;
  if (releases.length !== 2 || !first || !second) return null;
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
            h("li", {}, h("button", { type: "button", class: "link", onclick: () => store.set({ selected: { axis, id } }) }, id)),
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
  );
}
