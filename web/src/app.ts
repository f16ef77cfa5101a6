/** Puts the page together and keeps map, legend and lists in step with what the reader chose. */

import { bundleChanges, changeOf, joined, type Change } from "./changes";
import type { Palette } from "./colour";
import { difference } from "./compare";
import { h, refill, replace } from "./dom";
import { first, kept } from "./first";
import { amount, area, axisTitle, other, plural } from "./format";
import { valueTitle } from "./kinds";
import { joinBounds, type Point } from "./geometry";
import { heart } from "./heart";
import { moveOntoLand } from "./land";
import { changeMarks, flowLayer, flowMarks, ringLayer, staying, widest } from "./map/arrows";
import { changedLines, changeLabels, changeLayers, changeScale } from "./map/changes";
import { stacked } from "./map/grid";
import { baseLayers, ownLayer, zoneLayers, type Piece } from "./map/layers";
import { bundleMarks, densityScale, placeLayers, roughLabels, softHeads, type Label } from "./map/places";
import { shade, type Panel } from "./map/shading";
import { pointedAt, type OnMap } from "./map/tooltip";
import { Maps } from "./map/view";
import { AXES, unpack, withGoodness, type Goodness, type Model, type PackedModel, type Release } from "./model";
import { Names } from "./names";
import { nodeAt, type Nest } from "./nest";
import { see, type Seen } from "./places";
import { account, asked } from "./panels/account";
import { changeEntries, changeSentence } from "./panels/changes";
import { differences } from "./panels/differences";
import { histograms } from "./panels/histogram";
import { cellChangeLegend, legend, placeLegend } from "./panels/legend";
import { KindPanels, mapsOf } from "./panels/kinds";
import { placeEntries, PlacePanel, sentence, stripBar } from "./panels/places";
import { privacy, utility } from "./panels/quality";
import { caution, headline, statement } from "./panels/statement";
import { toolbar } from "./panels/toolbar";
import { ZonePanel } from "./panels/zones";
import { readBeneath } from "./beneath";
import { Store, type State } from "./state";
import { followTheme, palette, themeButton } from "./theme";

const PASSED_ON = "This file holds only what the release publishes, asks for nothing from the network, and can be passed on like the release itself.";
const FULL = "This page tells more than the release does. It is for whoever keeps the data, and not for publication.";
const LIVE = "This page talks to ODkAnon on this machine and to nobody else. It is sent releases that meet the rule above, never trips; save one to pass it on.";

type Titled = Panel & { title: string };

/** How much of the window's height the map takes where chips and sliders below it should be in sight as well. */
const WITH_KINDS = 0.55;
/** Arrows and rings on each of several small maps. */
const FEW_FLOWS = 6;

export class App {
  readonly store: Store;
  readonly maps: Maps;
  private readonly legend = h("div", { class: "legend" });
  private readonly top = h("div", { class: "top" });
  private readonly numbers = h("div", { class: "numbers" });
  private readonly heading = h("div", {});
  private readonly footing = h("footer", {});
  private readonly zones: ZonePanel;
  private readonly list: PlacePanel;
  private readonly tools = h("div", {});
  private readonly answer = h("p", { class: "answer", role: "status" });
  private readonly strip = h("div", {});
  private readonly kinds: KindPanels;
  private readonly parts: HTMLElement;
  private panels: Titled[] = [];
  /** What each panel of the map of places shows; nothing on a map of zones. */
  private seen: Seen[] = [];
  private change: Change | null = null;
  /** Releases that belong together, of which one is shown. */
  private readonly together: Release[];
  private names: Names;
  /** True while the numbers around the map are still those of the release before. */
  behind = false;
  /** The zone that was chosen before, to go back to. */
  private before: string | null = null;

  constructor(
    readonly root: Element,
    public model: Model,
    private readonly controls: HTMLElement | null = null,
  ) {
    this.landward();
    this.together = model.switch === null ? [] : model.releases;
    if (this.together.length) this.model = model = { ...model, releases: model.releases.slice(0, 1) };
    const { releases } = model;
    this.store = new Store(first(releases));
    this.names = new Names(model.names);
    this.zones = new ZonePanel(releases, this.store, () => this.names);
    this.list = new PlacePanel(this.zones.element, this.store, () => this.names);
    this.kinds = new KindPanels(this.store);
    this.parts = h("div", { class: "below" }, this.strip, this.kinds.element);
    this.maps = new Maps({
      point: (panel, layer, object) => pointedAt(this.onMap(panel), panel, layer, object),
      click: (panel, layer, object, place) => this.click(panel, layer, object, place),
      leave: () => this.store.set({ selected: null, place: null }),
    });
    this.fillTools();
    const mapped = h("section", { class: "card mapcard", "aria-label": "Map" }, this.tools, this.answer, this.maps.element, this.legend, this.parts);
    replace(
      root,
      h("header", {}, this.heading, this.switcher(), themeButton(this.store)),
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
    if (this.store.state.view === "zones") this.zones.draw();
    followTheme(this.store, (printing) => {
      this.draw();
      if (printing) this.maps.drawNow();
    });
  }

  /** Shows another model in the same page: what the live explorer does after every change. */
  replaceModel(packed: PackedModel): void {
    const { base, beneath, names, releases: before } = this.model;
    const next = unpack(packed);
    this.model = { ...next, base: next.base.box ? next.base : base, beneath, names: next.names ?? names };
    this.names = new Names(this.model.names);
    this.landward();
    this.behind = true;
    this.maps.after(() => this.fillNumbers());
    this.follow(before);
  }

  private landward(): void {
    for (const release of this.model.releases) for (const axis of AXES) moveOntoLand(release[axis], this.model.base);
  }

  /** Shows one of several releases that belong together. */
  private turnTo(number: number): void {
    const before = this.model.releases;
    this.model = { ...this.model, releases: [this.together[number]!] };
    this.fillNumbers();
    this.follow(before);
  }

  /** Draws map and lists anew after the releases changed; the view and the choices stay. */
  private follow(before: Release[]): void {
    this.maps.stay();
    this.keepState(before);
    this.zones.reset(this.model.releases);
    this.arrange();
    if (this.store.state.view === "zones") this.zones.draw();
    this.draw();
  }

  private switcher(): HTMLElement | null {
    if (!this.together.length) return null;
    const select = h("select", {}, ...this.together.map(({ name }, number) => h("option", { value: number }, name)));
    select.addEventListener("change", () => this.turnTo(Number(select.value)));
    return h("label", { class: "switch" }, "Show ", select);
  }

  /** Adds what took longer to find out than the release itself. */
  addGoodness(found: Goodness[]): void {
    this.model.releases.forEach((release, number) => (release.about = withGoodness(release.about, found[number])));
    this.fillNumbers();
  }

  /** What the reader chose stays, unless the new model has no such thing. Nobody is told: all is drawn anew anyway. */
  private keepState(before: Release[]): void {
    this.store.state = kept(this.store.state, before, this.model.releases);
    this.fillTools();
  }

  /** Builds the choices above the map; whoever was in them with the keyboard stays there. */
  private fillTools(): void {
    const focus = this.tools.contains(document.activeElement) ? (document.activeElement as HTMLInputElement) : null;
    const same = focus && (focus.id ? `#${focus.id}` : `[name="${focus.name}"][value="${focus.value}"]`);
    replace(this.tools, toolbar(this.model.releases, this.store, (file) => void this.addBeneath(file)));
    if (same) this.tools.querySelector<HTMLElement>(same)?.focus();
  }

  /** Ids of the zones of a panel that stand out because the other release lacks them. */
  differing(panel: Panel): Set<string> | null {
    const [one, two] = this.model.releases;
    if (this.model.releases.length !== 2 || this.store.state.shade !== "difference") return null;
    return new Set(difference(one!, two!, panel.axis)[panel.release ? 1 : 0]);
  }

  private fillHeading(): void {
    const { releases } = this.model;
    const all = this.model.switch === null ? [] : [this.model.switch];
    const names = [...all, ...releases.map((release) => release.name)].join(" · ");
    document.title = `${names} – ODkAnon`;
    const single = releases.length === 1 ? releases[0] : null;
    const what = single ? `Origin–destination matrix protected with ${single.method.title}` : `${plural(releases.length, "release")} side by side`;
    replace(this.heading, h("h1", {}, names), h("p", {}, what));
    const { version, input } = releases[0]!.about;
    const made = version ? `Made by ODkAnon ${version}` : "";
    replace(
      this.footing,
      h("p", {}, this.controls ? LIVE : this.model.full ? FULL : PASSED_ON),
      h("p", {}, made, made && ". ", "Base map: Natural Earth. ", this.names.towns.length > 0 && "Names: GeoNames, CC BY 4.0. ", input?.sha256 && h("span", { class: "sha", title: "fingerprint (SHA-256) of the input" }, `Input ${input.sha256.slice(0, 16)}…`)),
    );
  }

  private fillNumbers(): void {
    this.behind = false;
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
    const { releases } = this.model;
    this.panels = this.store.state.view === "places" ? this.placePanels() : this.zonePanels();
    const all = releases.flatMap((release) => AXES.map((axis) => release[axis]));
    this.maps.show(this.panels, joinBounds(all.map(({ outlines }) => outlines.whole())), heart(all), this.store.state.view === "places" && releases[0]!.kinds.length ? WITH_KINDS : undefined);
  }

  private zonePanels(): Titled[] {
    const { axes, shade: shading } = this.store.state;
    const { releases } = this.model;
    const shown = AXES.filter((axis) => axes === "both" || axes === axis);
    const change = shading === "change" && releases.length === 2;
    const titled = shown.flatMap((axis) =>
      releases.map((release, number) => ({
        id: `r${number}-${axis}`,
        release: number,
        axis,
        title: `${releases.length > 1 ? `${change ? "Change · " : `${release.name} · `}` : ""}${axisTitle[axis]} (${plural(release[axis].id.length, "zone")})`,
      })),
    );
    return titled.filter((panel) => !change || panel.release === 1);
  }

  /** One map of places, or a small one for each value of an attribute. */
  private placePanels(): Titled[] {
    const { state } = this.store;
    const { towards: axis, each, measure } = state;
    const release = this.model.releases[0]!;
    if (this.model.releases.length > 1) return [{ id: `r0-${axis}`, release: 0, axis, title: `Change · ${axisTitle[axis]}` }];
    const kind = release.kinds.find(({ name }) => name === each);
    const shares = kind ? mapsOf(release, kind, state) : [];
    if (!shares.length) return [{ id: `r0-${axis}`, release: 0, axis, title: `${axisTitle[axis]} (${plural(release[axis].id.length, "zone")})` }];
    return shares.map(({ value, mass }, number) => ({ id: `m${number}`, release: 0, axis, value, title: `${valueTitle(value)} · ${amount(mass, measure)}` }));
  }

  private draw(): void {
    const { state } = this.store;
    const places = state.view === "places";
    const two = this.model.releases.length > 1;
    if (!places) this.drawZones(palette(state));
    else if (two) this.drawChange(palette(state));
    else this.drawPlaces(palette(state));
    this.answer.hidden = !places;
    this.parts.hidden = !places || two;
  }

  private drawZones(colours: Palette): void {
    const { state } = this.store;
    const { releases } = this.model;
    this.seen = [];
    const shadings = shade(releases, this.panels, state, colours);
    const differing = this.panels.map((panel) => this.differing(panel));
    const change = state.shade === "change" && releases.length === 2;
    const marks = releases.map((release, number) => {
      if (!change) return flowMarks(release, state);
      return number ? changeMarks(releases[0]!, releases[1]!, state) : { lines: [], rings: [] };
    });
    const all = { lines: marks.flatMap(({ lines }) => lines), rings: marks.flatMap(({ rings }) => rings) };
    const most = { arrow: widest(all.lines), ring: widest(all.rings) };
    this.maps.draw(
      [
        ...baseLayers(this.model, colours),
        ...this.panels.flatMap((panel, i) => zoneLayers(panel, releases[panel.release]!, shadings[i]!, differing[i]!, state, colours)),
        ownLayer(this.model, colours),
        ...marks.flatMap(({ lines, rings }, number) => [ringLayer(`r${number}/rings`, rings, most.ring, colours), flowLayer(`r${number}/flows`, lines, most.arrow, colours)]),
      ],
      this.townLabels(),
    );
    const stay = releases.length === 1 ? staying(releases[0]!, state) : null;
    replace(this.legend, ...legend(releases, this.panels, shadings, differing, all, stay, state, colours));
  }

  private drawPlaces(colours: Palette): void {
    const { state } = this.store;
    const release = this.model.releases[0]!;
    const whole = see(release, state);
    const many = this.panels.length > 1;
    this.seen = this.panels.map(({ value }) => (value === undefined ? whole : see(release, { ...state, only: { ...state.only, [state.each!]: value } })));
    const scale = densityScale(this.seen, colours);
    const marks = this.seen.map((seen) => bundleMarks(release, seen, many ? Math.min(FEW_FLOWS, state.flows) : state.flows));
    const all = { lines: marks.flatMap(({ lines }) => lines), rings: marks.flatMap(({ rings }) => rings) };
    const most = { arrow: widest(all.lines), ring: widest(all.rings) };
    const rough = many ? [] : roughLabels(release[state.towards].nest, whole, state.detail);
    this.maps.draw(
      [
        ...baseLayers(this.model, colours),
        ...this.panels.flatMap((panel, i) => placeLayers(panel, release, other[state.towards], this.seen[i]!, state.detail, scale, colours)),
        ownLayer(this.model, colours),
        ...this.panels.flatMap(({ id }, i) => {
          const { lines, rings } = marks[i]!;
          return [softHeads(`${id}/soft`, release, lines, state.detail, colours), ringLayer(`${id}/rings`, rings, most.ring, colours), flowLayer(`${id}/flows`, lines, most.arrow, colours)];
        }),
      ],
      [...rough, ...this.townLabels()],
    );
    replace(this.legend, ...placeLegend(scale, many || rough.length > 0, all, { mass: whole.stays, total: whole.total }, state, colours));
    this.answer.textContent = sentence(whole, state, this.nameOf(release[other[state.towards]].nest, whole.node));
    refill(this.strip, stripBar(release, this.store));
    this.kinds.draw(release);
    this.list.draw(placeEntries(release[state.towards], whole, this.names, state.detail), release[state.towards].nest, release[other[state.towards]].nest);
  }

  /** What changed between two releases at several resolutions. */
  private drawChange(colours: Palette): void {
    const { state } = this.store;
    const releases = this.model.releases as [Release, Release];
    const change = (this.change = changeOf(releases, state));
    const nests = AXES.map((axis) => joined(releases[0][axis].nest, releases[1][axis].nest).nest) as [Nest, Nest];
    const lines = changedLines(bundleChanges(releases, change, state.detail), nests, state.flows);
    const scale = changeScale(change, colours, state.relative);
    const rough = changeLabels(change, state.detail);
    this.maps.draw(
      [
        ...baseLayers(this.model, colours),
        ...this.panels.flatMap((panel) => changeLayers(panel, change, state, scale, colours)),
        ownLayer(this.model, colours),
        flowLayer(`${this.panels[0]!.id}/flows`, lines, widest(lines), colours),
      ],
      [...rough, ...this.townLabels()],
    );
    replace(this.legend, ...cellChangeLegend(releases, change, scale, rough.length > 0, { lines, rings: [] }, state, colours));
    const near = nests[AXES.indexOf(other[state.towards])]!;
    this.answer.textContent = changeSentence(releases, change, state, this.nameOf(near, change.near?.node ?? -1));
    this.list.draw(changeEntries(change, this.names, state.relative), change.nest, near, true);
  }

  /** What to call the chosen place: the town it is near, and how large the cell that stands for it is. */
  private nameOf({ area: areas }: Nest, node: number): string | null {
    const { place } = this.store.state;
    if (!place || node < 0) return null;
    const size = areas[node]!;
    const town = this.names.nearest(place);
    return [town ?? "this place", size > 0 && `(${area(size)})`].filter(Boolean).join(" ");
  }

  private townLabels(): Label[] {
    return this.names.towns.map(({ name, at }) => ({ at, text: name, kind: "town" }));
  }

  private update(changed: Set<keyof State>): void {
    const any = (...keys: (keyof State)[]): boolean => keys.some((key) => changed.has(key));
    if (any("view")) this.fillTools();
    if (any("each")) this.maps.startAnew();
    if (any("axes", "view", "towards", "each") || (any("shade") && this.model.releases.length === 2) || (this.store.state.each && any("only", "place", "measure", "detail"))) this.arrange();
    if (this.store.state.view === "zones" && any("axes", "measure", "selected", "view")) this.zones.draw(this.before);
    this.before = this.store.state.selected?.id ?? null;
    if (any("place") && this.store.state.place) this.maps.reveal(this.store.state.place);
    if (!(changed.size === 1 && changed.has("theme"))) this.draw();
  }

  private onMap(panel: Panel): OnMap {
    const { releases } = this.model;
    const seen = this.seen[this.panels.findIndex(({ id }) => id === panel.id)] ?? null;
    return { releases, state: this.store.state, seen, change: this.change, names: this.names };
  }

  private click(panel: Panel, layer: string, object: unknown, place: Point | null): void {
    if (this.store.state.view === "places") return this.store.set({ place });
    const zones = this.model.releases[panel.release]![panel.axis];
    const zone = layer.endsWith("/fill") ? (object as Piece).zone : place && !this.store.state.selected && stacked(zones) ? nodeAt(zones.nest, place) : -1;
    const id = zones.id[zone];
    if (id === undefined) return this.store.set({ selected: null });
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
