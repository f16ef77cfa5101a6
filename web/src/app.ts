/** Puts the page together and keeps map, legend and lists in step with what the reader chose. */

import { difference } from "./compare";
import { h, replace } from "./dom";
import { amount, axisTitle, plural } from "./format";
import { boundsOf } from "./geometry";
import { heart } from "./heart";
import { flowLayer, flowLines, type Line } from "./map/arrows";
import { baseLayers, zoneLayers, type Piece } from "./map/layers";
import { shade, type Panel } from "./map/shading";
import { Maps } from "./map/view";
import { AXES, unpack, type About, type Model, type PackedModel, type Release } from "./model";
import { account, asked } from "./panels/account";
import { differences } from "./panels/differences";
import { histograms } from "./panels/histogram";
import { legend } from "./panels/legend";
import { privacy, utility } from "./panels/quality";
import { caution, headline, statement } from "./panels/statement";
import { toolbar } from "./panels/toolbar";
import { zoneFacts, ZonePanel, zoneTitle } from "./panels/zones";
import { readBeneath } from "./beneath";
import { Store, type State } from "./state";
import { followTheme, palette, themeButton } from "./theme";

const PASSED_ON = "This file holds only what the release publishes, asks for nothing from the network, and can be passed on like the release itself.";
const FULL = "This page tells more than the release does. It is for whoever keeps the data, and not for publication.";
const LIVE = "This page talks to ODkAnon on this machine and to nobody else. It is sent releases that meet the rule above, never trips; save one to pass it on.";

const weighted = (releases: Release[]): boolean => releases.some((release) => release.origin.mass.weight);

function first(releases: Release[]): State {
  const boxes = releases.every(({ about }) => about.method === "mondrian");
  return {
    axes: releases.length > 1 ? "origin" : "both",
    measure: "trips",
    // Boxes all hold about the same mass; only their size tells them apart.
    shade: releases.length === 2 ? "difference" : boxes ? "density" : "total",
    flows: releases.length > 1 ? 0 : boxes ? 20 : 50,
    selected: null,
    theme: "auto",
  };
}

export class App {
  readonly store: Store;
  readonly maps: Maps;
  private readonly legend = h("div", { class: "legend" });
  private readonly top = h("div", { class: "top" });
  private readonly numbers = h("div", { class: "numbers" });
  private readonly heading = h("div", {});
  private readonly footing = h("footer", {});
  private readonly zones: ZonePanel;
  private readonly tools = h("div", {});
  private panels: Panel[] = [];

  constructor(
    readonly root: Element,
    public model: Model,
    private readonly controls: HTMLElement | null = null,
  ) {
    const { releases } = model;
    this.store = new Store(first(releases));
    this.zones = new ZonePanel(releases, this.store);
    this.maps = new Maps({
      tooltip: (panel, layer, object) => this.tooltip(panel, layer, object),
      click: (panel, layer, object) => this.click(panel, layer, object),
    });
    this.fillTools();
    const mapped = h("section", { class: "card mapcard", "aria-label": "Map" }, this.tools, this.maps.element, this.legend);
    replace(
      root,
      h("header", {}, this.heading, themeButton(this.store)),
      h(
        "main",
        { class: controls && "explore" },
        controls,
        h("div", { class: "content" }, this.top, h("div", { class: "mapline" }, mapped, this.zones.element), this.numbers),
      ),
      this.footing,
    );
    this.maps.start();
    this.store.listen((_, changed) => this.update(changed));
    this.fillNumbers();
    this.arrange();
    followTheme(this.store, () => this.draw());
  }

  /** Shows another model in the same page: what the live explorer does after every change. */
  replaceModel(packed: PackedModel): void {
    const { base, beneath, releases: before } = this.model;
    const next = unpack(packed);
    this.model = { ...next, base: next.base.box ? next.base : base, beneath };
    this.maps.stay();
    this.keepState(before);
    this.zones.reset(this.model.releases);
    this.fillNumbers();
    this.arrange();
    this.draw();
  }

  /** Adds what took longer to find out than the release itself. */
  setLimits(limits: About["limit"][]): void {
    this.model.releases.forEach((release, number) => (release.about.limit = limits[number] ?? null));
    this.fillNumbers();
  }

  /** What the reader chose stays, unless the new model has no such thing. Nobody is told: all is drawn anew anyway. */
  private keepState(before: Release[]): void {
    const { releases } = this.model;
    const { selected, theme, ...chosen } = this.store.state;
    const fresh = before.length === releases.length && weighted(before) === weighted(releases) ? chosen : first(releases);
    const there = selected && releases.some((release) => release[selected.axis].number.has(selected.id));
    this.store.state = { ...fresh, theme, selected: there ? selected : null };
    if (fresh !== chosen) this.fillTools();
  }

  private fillTools(): void {
    replace(this.tools, toolbar(this.model.releases, this.store, (file) => void this.addBeneath(file)));
  }

  /** Ids of the zones of a panel that stand out because the other release lacks them. */
  differing(panel: Panel): Set<string> | null {
    const [one, two] = this.model.releases;
    if (this.model.releases.length !== 2 || this.store.state.shade !== "difference") return null;
    return new Set(difference(one!, two!, panel.axis)[panel.release ? 1 : 0]);
  }

  private fillHeading(): void {
    const { releases } = this.model;
    const names = releases.map((release) => release.name).join(" · ");
    document.title = `${names} – ODkAnon`;
    const single = releases.length === 1 ? releases[0] : null;
    const what = single ? `Origin–destination matrix protected with ${single.method.title}` : `${plural(releases.length, "release")} side by side`;
    replace(this.heading, h("h1", {}, names), h("p", {}, what));
    const { version, input } = releases[0]!.about;
    const made = version ? `Made by ODkAnon ${version}` : "";
    replace(
      this.footing,
      h("p", {}, this.controls ? LIVE : this.model.full ? FULL : PASSED_ON),
      h("p", {}, made, made && ". ", "Base map: Natural Earth. ", input?.sha256 && h("span", { class: "sha", title: "fingerprint (SHA-256) of the input" }, `Input ${input.sha256.slice(0, 16)}…`)),
    );
  }

  private fillNumbers(): void {
    this.fillHeading();
    const { releases } = this.model;
    const sentences = releases.map((release) =>
      h("p", { class: "statement" }, releases.length > 1 && h("b", {}, `${release.name}: `), statement(release.about), " ", h("small", {}, caution(release.about))),
    );
    replace(this.top, ...sentences, releases.length === 1 && headline(releases[0]!));
    replace(
      this.numbers,
      differences(releases, this.store),
      utility(releases),
      privacy(releases),
      histograms(releases),
      account(releases),
      asked(releases),
    );
    this.numbers.classList.toggle("wide", releases.length > 2);
  }

  private arrange(): void {
    const { axes } = this.store.state;
    const { releases } = this.model;
    const shown = AXES.filter((axis) => axes === "both" || axes === axis);
    const titled = shown.flatMap((axis) =>
      releases.map((release, number) => ({
        id: `r${number}-${axis}`,
        release: number,
        axis,
        title: `${releases.length > 1 ? `${release.name} · ` : ""}${axisTitle[axis]} (${plural(release[axis].id.length, "zone")})`,
      })),
    );
    this.panels = titled;
    const all = releases.flatMap((release) => AXES.map((axis) => release[axis]));
    this.maps.show(titled, boundsOf(all.flatMap((zones) => zones.polygons.flat())), heart(all));
  }

  private draw(): void {
    const { state } = this.store;
    const { releases } = this.model;
    const colours = palette(state);
    const shadings = shade(releases, this.panels, state, colours);
    const differing = this.panels.map((panel) => this.differing(panel));
    const lines = releases.map((release) => flowLines(release, state));
    this.maps.draw([
      ...baseLayers(this.model, colours),
      ...this.panels.flatMap((panel, i) => zoneLayers(panel, releases[panel.release]!, shadings[i]!, differing[i]!, state, colours)),
      ...lines.map((own, number) => flowLayer(`r${number}/flows`, own, colours)),
    ]);
    replace(this.legend, ...legend(releases, this.panels, shadings, differing, lines.flat(), state, colours));
  }

  private update(changed: Set<keyof State>): void {
    if (changed.has("axes")) this.arrange();
    if (["axes", "measure", "selected"].some((key) => changed.has(key as keyof State))) this.zones.draw();
    if (!(changed.size === 1 && changed.has("theme"))) this.draw();
  }

  private tooltip(panel: Panel, layer: string, object: unknown): string[] | null {
    const release = this.model.releases[panel.release]!;
    if (layer.endsWith("/fill")) {
      const { zone } = object as Piece;
      return [zoneTitle(panel.axis, release[panel.axis].id[zone]!), ...zoneFacts(release, panel.axis, zone)];
    }
    if (!layer.endsWith("/flows")) return null;
    const { flow, mass } = object as Line;
    const { origin, destination, flows } = release;
    const from = origin.id[flows.end.origin[flow]!]!;
    const to = destination.id[flows.end.destination[flow]!]!;
    return [amount(mass, this.store.state.measure), `from origin zone ${from}`, `to destination zone ${to}`];
  }

  private click(panel: Panel, layer: string, object: unknown): void {
    if (!layer.endsWith("/fill")) return this.store.set({ selected: null });
    const id = this.model.releases[panel.release]![panel.axis].id[(object as Piece).zone]!;
    const { selected } = this.store.state;
    const again = selected?.id === id && selected.axis === panel.axis;
    this.store.set({ selected: again ? null : { axis: panel.axis, id } });
  }

  private async addBeneath(file: File): Promise<void> {
    try {
      this.model.beneath = readBeneath(JSON.parse(await file.text()));
      this.draw();
    } catch {
      alert(`${file.name} is not a GeoJSON file.`);
    }
  }
}
