/** Puts the page together and keeps map, legend and lists in step with what the reader chose. */

import { readBeneath } from "./beneath";
import { h, refill, replace } from "./dom";
import { first, kept } from "./first";
import { joinBounds, type Point } from "./geometry";
import { heart } from "./heart";
import { moveOntoLand } from "./land";
import { stacked } from "./map/grid";
import type { Piece } from "./map/layers";
import type { Titled } from "./map/layout";
import { panelsOf } from "./map/panels";
import type { Panel } from "./map/shading";
import { pointedAt, type OnMap } from "./map/tooltip";
import { Maps } from "./map/view";
import { AXES, unpack, withGoodness, type Goodness, type Model, type PackedModel, type Release } from "./model";
import { Names } from "./names";
import { nodeAt } from "./nest";
import { account, asked } from "./panels/account";
import { differences } from "./panels/differences";
import { footing, heading, promises, titleOf } from "./panels/heading";
import { hereCard, placedWords, totalOf } from "./panels/here";
import { histograms } from "./panels/histogram";
import { KindPanels } from "./panels/kinds";
import { PlacePanel } from "./panels/places";
import { privacy, utility } from "./panels/quality";
import { headline } from "./panels/statement";
import { toolbar } from "./panels/toolbar";
import { ZonePanel } from "./panels/zones";
import { pictureOf, type Picture } from "./pictures";
import { Store, type State } from "./state";
import { followTheme, palette, themeButton } from "./theme";

/** How much of the window's height the map takes where chips and sliders below it should be in sight as well. */
const WITH_KINDS = 0.55;

export class App {
  readonly store: Store;
  readonly maps: Maps;
  private readonly heading = h("div", {});
  private readonly top = h("div", { class: "top" });
  private readonly tools = h("div", {});
  private readonly answer = h("p", { class: "answer", role: "status" });
  private readonly legend = h("div", { class: "legend" });
  private readonly kinds: KindPanels;
  private readonly here = h("section", { class: "card here", "aria-label": "How coarse it is here" });
  private readonly zones: ZonePanel;
  private readonly list: PlacePanel;
  private readonly numbers = h("div", { class: "numbers" });
  private readonly footing = h("footer", {});
  private panels: Titled[] = [];
  private picture: Picture | null = null;
  /** Releases that belong together, of which one is shown. */
  private readonly together: Release[];
  private names: Names;
  /** True while what stands around the map is still that of the release before. */
  behind = false;
  /** The zone that was chosen before, to go back to. */
  private before: string | null = null;

  constructor(
    root: Element,
    public model: Model,
    private readonly controls: HTMLElement | null = null,
  ) {
    this.landward();
    this.together = model.switch === null ? [] : model.releases;
    if (this.together.length) this.model = model = { ...model, releases: model.releases.slice(0, 1) };
    this.store = new Store(first(model.releases));
    this.names = new Names(model.names);
    this.zones = new ZonePanel(model.releases, this.store, () => this.names);
    this.list = new PlacePanel(this.zones.element, this.store, () => this.names, () => this.approach());
    this.kinds = new KindPanels(this.store);
    this.maps = new Maps({
      point: (panel, layer, object) => pointedAt(this.onMap(panel), panel, layer, object),
      click: (panel, layer, object, place) => this.click(panel, layer, object, place),
      leave: () => this.store.set({ selected: null, place: null }),
    });
    replace(root, ...this.build());
    this.maps.start();
    this.store.listen((_, changed) => this.update(changed));
    this.fillTools();
    this.fillNumbers();
    this.arrange();
    if (this.store.state.view === "zones") this.zones.draw();
    followTheme(this.store, (printing) => {
      this.draw();
      if (printing) this.maps.drawNow();
    });
  }

  private build(): HTMLElement[] {
    const mapped = h("section", { class: "card mapcard", "aria-label": "Map" }, this.tools, this.answer, this.maps.element, this.legend, this.kinds.element);
    const beside = h("div", { class: "side" }, this.here, this.zones.element);
    const content = h("div", { class: "content" }, this.top, h("div", { class: "mapline" }, mapped, beside), this.numbers);
    return [
      h("header", {}, this.heading, this.switcher(), themeButton(this.store)),
      h("main", { class: this.controls && "explore" }, this.controls, content),
      this.footing,
    ];
  }

  /** Shows another model in the same page: what the live explorer does after every change. `then` comes with the numbers. */
  replaceModel(packed: PackedModel, then: () => void): void {
    const { base, beneath, names, releases: before } = this.model;
    const next = unpack(packed);
    this.model = { ...next, base: next.base.box ? next.base : base, beneath, names: next.names ?? names };
    if (next.names) this.names = new Names(next.names);
    this.landward();
    this.behind = true;
    this.follow(before);
    // Without a graphics card all that is painted waits in one line: the map comes first.
    this.maps.after(() => {
      this.catchUp();
      this.fillNumbers();
      this.behind = false;
      then();
    });
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
    this.catchUp();
  }

  /** Draws the map anew after the releases changed; the view and the choices stay, unless there is no such thing any more. */
  private follow(before: Release[]): void {
    this.maps.camera.stay();
    // Nobody is told: all is drawn anew anyway.
    this.store.state = kept(this.store.state, before, this.model.releases);
    this.zones.reset(this.model.releases);
    this.arrange();
    this.paint();
  }

  /** Brings what stands around the map in step with it. */
  private catchUp(): void {
    this.fillTools();
    if (this.store.state.view === "zones") this.zones.draw();
    this.tell();
  }

  private switcher(): HTMLElement | null {
    if (!this.together.length) return null;
    const select = h("select", {}, ...this.together.map(({ name }, number) => h("option", { value: number }, name)));
    select.addEventListener("change", () => this.turnTo(Number(select.value)));
    return h("label", { class: "switch" }, "Show ", select);
  }

  /** Adds what took longer to find out than the release itself. */
  addGoodness(found: Goodness[]): void {
    const { releases } = this.model;
    releases.forEach((release, number) => (release.about = withGoodness(release.about, found[number])));
    this.numbers.querySelector(".utility")?.replaceWith(utility(releases));
  }

  /** Builds the choices above the map; whoever was in them with the keyboard stays there. */
  private fillTools(): void {
    const focus = this.tools.contains(document.activeElement) ? (document.activeElement as HTMLInputElement) : null;
    const same = focus && (focus.id ? `#${focus.id}` : `[name="${focus.name}"][value="${focus.value}"]`);
    replace(this.tools, toolbar(this.model.releases, this.store, (file) => void this.addBeneath(file)));
    if (same) this.tools.querySelector<HTMLElement>(same)?.focus();
  }

  private fillNumbers(): void {
    const { releases } = this.model;
    document.title = `${titleOf(this.model)} – ODkAnon`;
    replace(this.heading, ...heading(this.model));
    replace(this.footing, ...footing(this.model, this.controls !== null, this.names.towns.length > 0));
    replace(this.top, ...promises(releases), releases.length === 1 && headline(releases[0]!));
    replace(this.numbers, differences(releases, this.store), utility(releases), privacy(releases), histograms(releases), account(releases), asked(releases));
    this.numbers.classList.toggle("wide", releases.length > 2);
  }

  private arrange(): void {
    const { releases } = this.model;
    const { state } = this.store;
    this.panels = panelsOf(releases, state);
    const all = releases.flatMap((release) => AXES.map((axis) => release[axis]));
    this.maps.show(this.panels, joinBounds(all.map(({ outlines }) => outlines.whole())), heart(all), state.view === "places" && releases[0]!.kinds.length ? WITH_KINDS : undefined);
  }

  private draw(): void {
    this.paint();
    this.tell();
  }

  private paint(): void {
    const { model, panels, names, store: { state } } = this;
    this.picture = pictureOf({ model, state, panels, names, palette: palette(state) });
    this.maps.draw(this.picture.layers, this.picture.labels);
  }

  /** Says what is on the map: titles and labels, legend, sentence, the answer beside it, and the list. */
  private tell(): void {
    const { legend, answer, here, cells } = this.picture!.words();
    const release = this.model.releases[0]!;
    this.maps.write();
    replace(this.legend, ...legend);
    this.answer.hidden = answer === null;
    replace(this.answer, answer?.main, answer?.note && h("small", {}, answer.note), here && h("span", { class: "hidden" }, ` ${placedWords(here.placed, totalOf(release, here.placed, this.store.state))}.`));
    this.here.hidden = this.kinds.element.hidden = here === null;
    if (here) {
      refill(this.here, ...hereCard(release, here.placed, this.store, here.where));
      this.kinds.draw(release);
    }
    if (cells) this.list.draw(cells.entries, cells.far, cells.near, cells.counted);
  }

  private update(changed: Set<keyof State>): void {
    const any = (...keys: (keyof State)[]): boolean => keys.some((key) => changed.has(key));
    if (any("view")) this.fillTools();
    if (any("each")) this.maps.camera.startAnew();
    if (any("axes", "view", "towards", "unit", "each") || (any("shade") && this.model.releases.length === 2) || (this.store.state.each && any("only", "place", "measure", "detail"))) this.arrange();
    if (this.store.state.view === "zones" && any("axes", "measure", "selected", "view")) this.zones.draw(this.before);
    this.before = this.store.state.selected?.id ?? null;
    if (any("place") && this.store.state.place) this.maps.camera.reveal(this.store.state.place);
    if (!(changed.size === 1 && changed.has("theme"))) this.draw();
  }

  /** Goes near the chosen place and its answer, which may be far away or small on the map. */
  private approach(): void {
    const { place } = this.store.state;
    if (place) this.maps.camera.approach(joinBounds([this.picture!.answer(), [place, place]]));
  }

  private onMap(panel: Panel): OnMap {
    const seen = this.picture?.seen[this.panels.findIndex(({ id }) => id === panel.id)] ?? null;
    return { releases: this.model.releases, state: this.store.state, seen, change: this.picture?.change ?? null, names: this.names };
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
