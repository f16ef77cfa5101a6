/** Puts the page together and keeps map, card, strip and matrix in step with what the reader chose. */

import { answer, certainty, changes, placeChanges, type Answer, type Change, type Entry, type Question } from "./ask";
import { h, replace } from "./dom";
import { download, flowsAsCsv, pictureOf, type Row } from "./download";
import { joinBounds, measure, type Bounds, type Point } from "./geometry";
import { keyOf, type Level, type Table } from "./levels";
import { widthOf, type Line } from "./map/arrows";
import { cityLayers, flowColour, type Circle, type City } from "./map/city";
import type { Label } from "./map/labels";
import { unitsAt } from "./map/ruler";
import type { Pointed } from "./map/tip";
import { Maps } from "./map/view";
import { noiseOf, unpack, withGoodness, type Goodness, type Model, type PackedModel } from "./model";
import { Card, listed, type CardContent } from "./panels/card";
import type { Suggestion } from "./panels/field";
import { Matrix } from "./panels/matrix";
import { Promises } from "./panels/promise";
import { sparkline } from "./panels/sparkline";
import { Strip, valueName, type Attribute } from "./panels/strip";
import { Tools } from "./panels/tools";
import { fromHash, Store, toHash, type State } from "./state";
import { followTheme, isDark, palette } from "./theme";
import { certainShare, knownAs, LANGUAGES, Speech, type Numbers, type Told } from "./words";

const MOST_FLOWS = 900;
/** Milliseconds for which each hour is shown. */
const BEAT = 1400;
/** How many times as large as what is drawn an area is that is outlined as only roughly known. */
const COARSER = 1.5;
/** Changes in a file. */
const MOST_CHANGES = 20_000;
/** A place that is drawn smaller than this, in pixels, belongs to a coarser level; on a small map it may be smaller. */
const SMALLEST = 78;
const USUAL_WIDTH = 1300;
/** Steps of zoom from the first view, where districts are shown, to the next level. */
const CLOSER = 0.8;
const LARGEST_CIRCLE = 15;
/** The part of all trips that the first view holds. */
const TAIL = 0.03;
const SUGGESTED = 8;
const KM_PER_DEGREE = 111.2;
/** Places without a town's name that are labelled, the largest. */
const LABELLED = 12;
const ALPHA = { surely: 1, likely: 0.75, unsure: 0.28 };

/** Without accents and capitals, so that "maipu" finds Maipú. */
const plain = (text: string): string => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().trim();

export class App {
  readonly store: Store;
  readonly maps: Maps;
  /** True while what stands around the map is still that of the release before. */
  behind = false;
  private readonly first: State;
  private readonly card: Card;
  private readonly strip: Strip;
  private readonly tools: Tools;
  private readonly matrix: Matrix;
  private readonly promises: Promises;
  private readonly switcher = h("div", { class: "switch", hidden: true });
  private speech: Speech;
  private level!: Level;
  private city: City | null = null;
  private shownChanges: Change[] = [];

  constructor(
    private readonly root: Element,
    public model: Model,
    private readonly controls: HTMLElement | null = null,
    private readonly embedded = false,
  ) {
    const language = [model.titles.language, navigator.language.slice(0, 2), "en"].find((one) => one && one in LANGUAGES)!;
    this.first = { from: null, to: null, level: null, only: {}, view: model.releases.length === 2 && model.switch === null ? "change" : "flows", count: this.hasWeights ? "weight" : "trips", release: 0, rough: false, language, theme: "auto" };
    const given = fromHash(location.hash);
    this.store = new Store(this.valid({ ...this.first, ...given.state }));
    this.speech = new Speech(this.store.state.language);
    this.card = new Card({ choose: (end, id) => this.choose(end, id), suggest: (text) => this.suggest(text), open: (entry) => this.open(entry), mark: (entry) => this.maps.mark(entry ? this.level.polygons[entry.place]! : []) }, this.switcher);
    this.strip = new Strip({ pick: (name, value) => this.pick(name, value), play: (name, values) => this.play(name, values) });
    this.tools = new Tools({ set: (change) => this.store.set(change), csv: () => this.csv(), png: () => this.png(), copy: () => copyText(location.href) });
    this.matrix = new Matrix((from, to) => this.ask(from, to, "flows"));
    this.promises = new Promises(controls !== null);
    this.maps = new Maps(
      {
        point: (flow, place) => this.point(flow as Line | null, place),
        click: (place) => this.click(place),
        leave: () => this.stepBack(),
        moved: (_, byHand) => this.moved(byHand),
        padding: () => this.padding(),
      },
      embedded,
    );
    this.level = this.levelNow();
    replace(root, h("main", { class: embedded ? "embedded" : null }, this.maps.element, this.tools.element, this.matrix.element, controls, h("div", { class: "sheet", "data-card": "sheet" }, this.card.element, this.strip.element), h("div", { class: "corner", "data-card": "corner" }, this.promises.element, this.strip.key)));
    this.maps.speak(this.speech.words);
    this.maps.start();
    this.tell();
    this.frame();
    if (given.view) this.maps.camera.move(given.view);
    this.level = this.levelNow();
    this.store.listen((_, changed) => this.update(changed));
    followTheme(this.store, (printing) => {
      this.paint();
      this.drawTools();
      if (printing) {
        this.promises.fill();
        this.maps.drawNow();
      }
    });
    document.addEventListener("keydown", (event) => event.key === "Escape" && !event.defaultPrevented && !document.querySelector("dialog[open]") && this.stepBack());
    addEventListener("hashchange", () => this.readHash());
    this.tell();
  }

  /** A state without places, values and releases that this page does not have. */
  private valid(state: State): State {
    const { levels, releases } = this.model;
    const level = levels.find(({ name }) => name === state.level) ?? levels.find(({ number }) => number.has(state.from ?? state.to ?? "")) ?? null;
    const known = (id: string | null): string | null => (id !== null && level?.number.has(id) ? id : null);
    const [from, to] = [known(state.from), known(state.to)];
    const release = Math.min(state.release, releases.length - 1);
    const only = levels.some((one) => one.table(release, state.only)) ? state.only : {};
    const view = state.view === "change" && !this.isSeries ? "flows" : state.view;
    const count = this.hasWeights ? state.count : "trips";
    return { ...state, count, from, to, level: from ?? to ? level!.name : null, release, only, view, language: state.language in LANGUAGES ? state.language : "en" };
  }

  /** Shows another model in the same page: what the live explorer does after every change. `then` comes with the numbers. */
  replaceModel(packed: PackedModel, then: () => void): void {
    const { base, beneath, towns, releases: before } = this.model;
    const next = unpack(packed);
    this.model = { ...next, base: next.base.box ? next.base : base, beneath, towns: next.towns.length ? next.towns : towns };
    this.behind = true;
    const view = before.length === 1 && next.releases.length === 2 ? "change" : this.store.state.view;
    this.store.state = this.valid({ ...this.store.state, view });
    this.level = this.levelNow();
    this.maps.camera.hold(...this.bounds());
    this.paint();
    // Without a graphics card all that is painted waits in one line: the map comes first.
    this.maps.after(() => {
      this.tell();
      this.behind = false;
      then();
    });
  }

  /** Adds what took longer to find out than the release itself. */
  addGoodness(found: Goodness[]): void {
    this.model.releases.forEach((release, number) => (release.about = withGoodness(release.about, found[number])));
    this.promises.refresh();
  }

  /** Page pixels of the middle of a place of the level that is shown. */
  spot(id: string): Point | null {
    const centre = this.level.centre[this.level.number.get(id) ?? -1];
    return centre ? this.maps.project(centre) : null;
  }

  get shownLevel(): Level {
    return this.level;
  }

  get shownCity(): City | null {
    return this.city;
  }

  // What is asked

  private get question(): Question {
    const { from, to } = this.store.state;
    const number = (id: string | null): number => (id === null ? -1 : (this.level.number.get(id) ?? this.around(id)));
    return { level: this.level, from: number(from), to: number(to) };
  }

  /** The place of the level that is shown around one of another level: some values are known of larger places only. */
  private around(id: string): number {
    const other = this.model.levels.find((level) => level.number.has(id));
    const centre = other?.centre[other.number.get(id)!];
    return centre ? this.level.at(centre) : -1;
  }

  private table(release = this.store.state.release, level = this.level): Table {
    const { only } = this.store.state;
    return level.table(release, only, this.weighted) ?? level.table(release, {}, this.weighted)!;
  }

  /** Whether every release of the page has weights. */
  private get hasWeights(): boolean {
    const { levels, releases } = this.model;
    return releases.every((_, release) => levels[0]?.table(release)?.hasWeights);
  }

  private get weighted(): boolean {
    return this.store.state.count === "weight" && this.hasWeights;
  }

  private get compared(): [Table, Table] | null {
    const pair = this.pairOfReleases;
    return this.store.state.view === "change" && pair ? [this.table(pair[0]), this.table(pair[1])] : null;
  }

  /** Which two releases a change is between: of a series, the one that is shown and the one before. */
  private get pairOfReleases(): [number, number] | null {
    const after = Math.max(1, this.model.releases.length === 2 ? 1 : this.store.state.release);
    return this.isSeries ? [after - 1, after] : null;
  }

  /** Whether releases are of different times or makes, not of parts of one whole. */
  private get isSeries(): boolean {
    return this.model.releases.length > 1 && this.model.switch === null;
  }

  /** The level that belongs to the choice, else to the zoom; one that has the chosen values. */
  private levelNow(): Level {
    const { level, only, release } = this.store.state;
    const able = this.model.levels.filter((one) => one.table(release, only));
    const fixed = able.find(({ name }) => name === level);
    if (fixed) return fixed;
    const { camera } = this.maps;
    // Names that people know come first, until somebody looks closer.
    if (able[0]?.name === "districts" && camera.view.zoom < camera.fitted + CLOSER) return able[0];
    const { pixelsPerKm } = unitsAt(camera.view);
    const smallest = SMALLEST * Math.min(1, Math.max(0.6, this.maps.element.clientWidth / USUAL_WIDTH));
    const large = able.filter(({ typical }) => 2 * Math.sqrt(typical / Math.PI) * pixelsPerKm >= smallest);
    return large.at(-1) ?? able[0] ?? this.model.levels[0]!;
  }

  private choose(end: "from" | "to", id: string | null): void {
    if (id === null) return this.setPlaces({ ...this.places(), [end]: null });
    const other = this.model.levels[0]!;
    if (other !== this.level && other.name === "districts" && other.number.has(id)) {
      this.store.set({ from: null, to: null, [end]: id, level: other.name });
      return this.reveal();
    }
    const town = id.startsWith("town:") ? this.model.towns[Number(id.slice(5))]! : null;
    const place = town ? this.level.at(town.at) : this.level.number.get(id)!;
    if (place < 0) return;
    this.setPlaces({ ...this.places(), [end]: this.level.id[place]! });
    this.reveal();
  }

  private places(): Pick<State, "from" | "to"> {
    const { from, to } = this.store.state;
    return { from, to };
  }

  private setPlaces({ from, to }: Pick<State, "from" | "to">): void {
    this.store.set({ from, to, level: from ?? to ? this.level.name : null });
  }

  private ask(from: number, to: number, view?: State["view"]): void {
    const id = (place: number): string | null => (place < 0 ? null : this.level.id[place]!);
    this.store.set({ from: id(from), to: id(to), level: this.level.name, ...(view ? { view } : {}) });
    this.reveal();
  }

  /** First a click says where from, the second where to; a third begins anew. */
  private click(at: Point): void {
    const place = this.level.at(at);
    const { from, to } = this.question;
    if (place < 0) return;
    if (from < 0) this.ask(place, to);
    else if (to < 0) this.ask(from, place);
    else this.ask(place, -1);
  }

  private open({ place }: Entry): void {
    const { from, to } = this.question;
    if (from >= 0) this.ask(from, place);
    else if (to >= 0) this.ask(place, to);
    else this.ask(-1, place);
  }

  /** Takes back the last choice: to, from, the chosen values, the view. */
  private stepBack(): void {
    const { from, to, only, view } = this.store.state;
    if (view !== this.first.view) this.store.set({ view: this.first.view });
    else if (to !== null && from !== null) this.setPlaces({ from, to: null });
    else if (from !== null || to !== null) this.setPlaces({ from: null, to: null });
    else if (keyOf(only)) this.store.set({ only: {} });
    else this.maps.camera.fit();
  }

  private pick(name: string, value: string | null): void {
    const { [name]: _, ...others } = this.store.state.only;
    const both = value === null ? others : { ...others, [name]: value };
    this.store.set({ only: this.able(both) ? both : value === null ? {} : { [name]: value } });
  }

  /** Goes through the hours of the day; whatever the reader does stops it. */
  private play(name: string, values: string[]): void {
    if (this.playing) return this.stop();
    const chosen = values.indexOf(this.store.state.only[name] ?? "");
    let next = chosen < 0 || chosen === values.length - 1 ? 0 : chosen + 1;
    const step = (): void => {
      if (next === values.length) return this.stop();
      const { [name]: _, ...others } = this.store.state.only;
      const both = { ...others, [name]: values[next++]! };
      this.stepping = true;
      this.store.set({ only: this.able(both) ? both : { [name]: both[name]! } });
      this.stepping = false;
    };
    this.playing = setInterval(step, BEAT);
    step();
    this.drawStrip();
  }

  private stop(): void {
    if (this.playing) clearInterval(this.playing);
    this.playing = null;
    this.drawStrip();
  }

  private playing: ReturnType<typeof setInterval> | null = null;
  private stepping = false;

  private able(choice: State["only"]): boolean {
    return this.model.levels.some((level) => level.table(this.store.state.release, choice));
  }

  private suggest(text: string): Suggestion[] {
    const wanted = plain(text);
    const ids = this.level.id.map((id, place) => ({ id, name: this.level.title(place, this.speech) }));
    const towns = this.model.towns.map(({ name }, i) => ({ id: `town:${i}`, name })).filter((_, i) => this.level.at(this.model.towns[i]!.at) >= 0);
    const [coarsest] = this.model.levels;
    const districts = coarsest!.name === "districts" && coarsest !== this.level ? coarsest!.id.map((id, place) => ({ id, name: coarsest!.title(place, this.speech) })) : [];
    const known = new Set([...districts, ...ids].map(({ name }) => plain(name)));
    const all = [...districts, ...ids, ...towns.filter(({ name }) => !known.has(plain(name)))];
    const rank = ({ name }: Suggestion): number => (plain(name) === wanted ? 0 : plain(name).startsWith(wanted) ? 1 : plain(name).split(/[\s,-]+/).some((word) => word.startsWith(wanted)) ? 2 : 9);
    return all.filter((one) => rank(one) < 9).sort((a, b) => rank(a) - rank(b)).slice(0, SUGGESTED);
  }

  // What is shown

  private update(changed: Set<keyof State>): void {
    if (this.playing && !this.stepping) this.stop();
    if (changed.has("language")) {
      this.speech = new Speech(this.store.state.language);
      this.maps.speak(this.speech.words);
    }
    this.level = this.levelNow();
    if (changed.has("release")) this.maps.camera.hold(...this.bounds());
    this.paint();
    this.tell();
  }

  private moved(byHand: boolean): void {
    // The first view comes before all else is there.
    if (!this.city) return;
    const next = this.levelNow();
    if (next !== this.level) {
      this.level = next;
      this.paint();
      this.tell();
    } else if (byHand) this.writeHash();
  }

  /** How far the map can go, and where most trips are. */
  private bounds(): [Bounds | null, Bounds | null] {
    const level = this.model.levels.at(-1);
    const table = level?.table(this.store.state.release);
    if (!level || !table) return [null, null];
    const all = joinBounds(this.model.levels.flatMap((one) => one.id.map((_, place) => one.boundsOf(place))));
    return [all, heart(level, table) ?? all];
  }

  private frame(): void {
    this.maps.show(...this.bounds());
  }

  private reveal(): void {
    const { from, to } = this.question;
    this.root.querySelector(".sheet")!.scrollTop = 0;
    this.maps.camera.reveal(joinBounds([from, to].map((place) => (place < 0 ? null : this.level.boundsOf(place)))));
  }

  /** How much of the map lies under cards on each side. */
  private padding(): { left: number; right: number; top: number; bottom: number } {
    const map = this.maps.element.getBoundingClientRect();
    const side = (name: string): DOMRect | undefined => this.root.querySelector(`[data-card="${name}"]`)?.getBoundingClientRect();
    const [main, tools, strip, corner, sheet] = [side("main"), side("tools"), side("strip"), side("corner"), side("sheet")];
    const below = (...cards: (DOMRect | undefined)[]): number => Math.max(0, ...cards.map((card) => (card?.height ? map.bottom - card.top : 0)));
    if (!main || !tools) return { left: 0, right: 0, top: 0, bottom: 0 };
    if (this.embedded) return { left: 0, right: 0, top: 0, bottom: below(main) };
    const top = Math.max(0, tools.bottom - map.top);
    if (map.width <= 720) return { left: 0, right: 0, top, bottom: below(sheet) };
    return { left: main.right - map.left, right: this.controls ? this.controls.offsetWidth + 16 : 0, top, bottom: below(strip, corner) };
  }

  private paint(): void {
    const colours = palette(this.store.state);
    this.city = this.cityNow();
    const districts = this.model.levels.find(({ name }) => name === "districts") ?? null;
    const { from, to, only, view, release, rough, count } = this.store.state;
    const changed = JSON.stringify([this.level.name, from, to, only, count, view, release, rough, colours.dark, this.behind, this.paints++]);
    this.maps.draw(cityLayers(this.model, this.model.base, this.city, districts, colours, changed), this.labels(districts));
  }

  private paints = 0;

  private cityNow(): City {
    const { level, question, compared } = this;
    const chosen = { from: question.from, to: question.to };
    const rough = this.store.state.rough ? this.roughAreas() : [];
    if (compared) return { ...this.changeCity(compared, question), chosen, rough };
    const table = this.table();
    const { list } = answer(question, table);
    const asked = question.from >= 0 || question.to >= 0;
    const shade = new Float64Array(level.id.length);
    const density = (one: Entry): number => one.trips / Math.max(level.area[one.place]!, 1e-9);
    const top = quantile(list.map(density), 0.98);
    for (const one of list) shade[one.place] = density(one) / top;
    const keep = ({ origin, destination }: { origin: number; destination: number }): boolean =>
      origin !== destination && (question.from >= 0 ? origin === question.from : question.to < 0 || destination === question.to) && !!level.centre[origin] && !!level.centre[destination];
    const flows = table.largest(MOST_FLOWS, keep);
    const most = flows[0]?.trips ?? 1;
    const pair = question.from >= 0 && question.to >= 0;
    const colours = palette(this.store.state);
    const lines = flows.map((flow): Line => {
      const [r, g, b, a] = flowColour(flow.trips, most, colours);
      const faint = pair && flow.destination !== question.to ? 0.3 : 1;
      return { from: level.centre[flow.origin]!, to: level.centre[flow.destination]!, size: flow.trips, colour: [r, g, b, Math.round(a * faint)], ends: [flow.origin, flow.destination] };
    });
    return { level, shade, sign: null, lines, most, circles: this.circles(list, table, asked, question), chosen, rough };
  }

  private circles(list: Entry[], table: Table, asked: boolean, question: Question): Circle[] {
    const { level } = this;
    const colours = palette(this.store.state);
    const own = question.from >= 0 ? question.from : question.to;
    const most = Math.max(1, ...list.map(({ trips }) => trips));
    const radius = (trips: number): number => LARGEST_CIRCLE * Math.sqrt(Math.min(1, trips / most)) * (level.id.length > 300 ? 0.7 : 1);
    return list
      .filter(({ place, trips }) => level.centre[place] && (radius(trips) > 1 || place === own))
      .map(({ place, trips }) => {
        const stay = asked ? 0 : (table.pair(place, place)?.trips ?? 0);
        const size = Math.max(radius(trips), place === own ? 8 : 0);
        return { place, at: level.centre[place]!, radius: size, inner: place === own ? size - 3 : size * Math.sqrt(Math.min(1, stay / Math.max(trips, 1))), colour: flowColour(trips, most, colours) };
      })
      .reverse();
  }

  private changeCity([first, second]: [Table, Table], question: Question): Omit<City, "chosen" | "rough"> {
    const { level } = this;
    const colours = palette(this.store.state);
    const moving = changes(question, first, second, 200).filter(({ origin, destination, by }) => origin !== destination && by && level.centre[origin] && level.centre[destination]);
    this.shownChanges = moving;
    const most = Math.abs(moving[0]?.by ?? 1);
    const lines = moving.map(({ origin, destination, by, certainty }): Line => {
      const [r, g, b, a] = colours.only[by > 0 ? 1 : 0];
      return { from: level.centre[origin]!, to: level.centre[destination]!, size: Math.abs(by), colour: [r, g, b, Math.round(a * ALPHA[certainty] * (0.3 + 0.7 * Math.sqrt(Math.abs(by) / most)))], ends: [origin, destination] };
    });
    const places = placeChanges(question, first, second);
    const top = Math.abs(places[0]?.by ?? 1) || 1;
    const [shade, sign] = [new Float64Array(level.id.length), new Int8Array(level.id.length)];
    for (const { place, by } of places) [shade[place], sign[place]] = [(0.5 * Math.abs(by)) / top, Math.sign(by)];
    const circles = places
      .filter(({ place, by }) => level.centre[place] && LARGEST_CIRCLE * Math.sqrt(Math.abs(by) / top) > 2)
      .map(({ place, by }): Circle => ({ place, at: level.centre[place]!, radius: LARGEST_CIRCLE * Math.sqrt(Math.abs(by) / top), inner: 0, colour: colours.only[by > 0 ? 1 : 0] }));
    return { level, shade, sign, lines, most, circles: circles.reverse() };
  }

  /** Areas of the release that are coarser than what is drawn. */
  private roughAreas(): City["rough"] {
    const { rough } = this.model.releases[this.store.state.release]!;
    return rough.filter((area) => measure(area).area > COARSER * this.level.typical).flat();
  }

  /** Names: of the chosen places, then of those with most trips; of districts where there are some. */
  private labels(districts: Level | null): Label[] {
    const { level, question, speech } = this;
    const asked = [question.from, question.to].filter((place) => place >= 0);
    const chosen = asked.flatMap((place): Label[] => (level.centre[place] ? [{ at: level.centre[place], text: level.title(place, speech), kind: "chosen" }] : []));
    // Towns where they are; districts and zones in their middle.
    if (!districts && level.name !== "zones") {
      const towns = new Set(this.model.towns.map(({ name }) => name));
      const listed = (this.city?.circles ?? []).toReversed().slice(0, LABELLED).filter(({ place }) => !asked.includes(place) && !towns.has(level.title(place, speech)));
      return [...chosen, ...this.model.towns.filter(({ name }) => !chosen.some(({ text }) => text === name)).map(({ name, at }): Label => ({ at, text: name, kind: "place" })), ...listed.map(({ place, at }): Label => ({ at, text: level.title(place, speech), kind: "area" }))];
    }
    const named = districts ?? level;
    const table = this.table(this.store.state.release, named);
    const size = named.id.map((_, place) => table.starts(place).trips + table.ends(place).trips);
    const order = named.id.map((_, place) => place).filter((place) => named.label(place) !== null && named.centre[place] && size[place]! >= 1 && !(named === level && asked.includes(place)));
    const seen = new Set<string>();
    const others = order.sort((a, b) => size[b]! - size[a]! || a - b).flatMap((place): Label[] => {
      const text = named.label(place)!;
      if (seen.has(text)) return [];
      seen.add(text);
      return [{ at: named.centre[place]!, text, kind: "place" }];
    });
    return [...chosen, ...others];
  }

  private tell(): void {
    const { speech, level, question, compared } = this;
    const { words } = speech;
    const table = this.table();
    this.drawSwitcher();
    this.drawTools();
    if (compared) this.tellChange(compared);
    else this.tellFlows(answer(question, table));
    this.drawStrip();
    this.promises.draw(this.model, speech);
    const shown = this.store.state.view === "matrix";
    this.matrix.element.hidden = !shown;
    if (shown) this.matrix.draw(level, table, speech);
    document.title = `${this.title()} – ODkAnon`;
    document.documentElement.lang = speech.language;
    this.root.setAttribute("data-level", level.name);
    this.root.setAttribute("data-words", words.language);
    this.writeHash();
  }

  private drawStrip(): void {
    this.strip.draw({ attributes: this.attributes(), detail: this.detail(), most: this.city?.most ?? 0, signed: this.compared !== null, playing: this.playing !== null }, this.speech);
  }

  private detail(): string {
    const { words, area } = this.speech;
    const { name, typical } = this.level;
    if (name === "districts") return words.districts;
    return typical > 0 ? words.places(area(typical)) : words.zones;
  }

  private title(): string {
    const { words } = this.speech;
    const { from, to } = this.question;
    const name = (place: number): string => this.level.title(place, this.speech);
    if (from >= 0 && to >= 0) return words.titlePair(name(from), name(to));
    if (from >= 0) return words.titleFrom(name(from));
    if (to >= 0) return words.titleTo(name(to));
    return this.model.titles.title ?? words.title(this.model.city);
  }

  private tellFlows({ total, stay, list }: Answer): void {
    const { speech, question, level } = this;
    const { words } = speech;
    const { from, to } = question;
    const name = (place: number): string => level.title(place, speech);
    const shown = listed({ list });
    const most = Math.max(1, ...shown.map(({ trips }) => trips));
    this.card.draw(
      {
        title: this.title(),
        about: this.about(),
        from: from < 0 ? null : name(from),
        to: to < 0 ? null : name(to),
        sentences: this.sentences({ total, stay, list }),
        known: this.known({ total, stay, list }),
        heading: from >= 0 ? words.listFrom : to >= 0 ? words.listTo : words.listAll,
        list: shown.map((entry) => ({ entry, name: name(entry.place), number: speech.short(entry), share: entry.trips / most, sure: certainShare(entry) })),
        more: list.length - shown.length,
      },
      speech,
    );
  }

  private about(): string[] {
    const { source, period } = this.model.titles;
    const { only, release } = this.store.state;
    const values = Object.values(only).map((value) => valueName(value, this.speech));
    const title = this.question.from >= 0 || this.question.to >= 0 ? [this.model.titles.title] : [];
    const many = this.model.releases.length > 1 && this.store.state.view !== "change" ? [this.model.releases[release]!.name] : [];
    return [...values, ...many, ...title, source, period].filter((one): one is string => !!one);
  }

  private sentences({ total, stay, list }: Answer): string[] {
    const { speech, question, level } = this;
    const { words } = speech;
    const { from, to } = question;
    const name = (place: number): string => level.title(place, speech);
    if (from >= 0 && to >= 0) {
      if (!total) return [words.few(name(from), name(to), speech.number(Math.max(1, Math.ceil(this.table().least))))];
      return capital([words.pair(speech.told(total), name(from), name(to)), ...(boundless(total.asked ?? total) ? [] : [this.certainly(total)])]);
    }
    if (from < 0 && to < 0) {
      const tops = list.slice(0, 3).map((one, i) => {
        const share = i === 0 && total ? speech.share(one, total) : null;
        return share ? `${name(one.place)} (${share})` : name(one.place);
      });
      const first = keyOf(this.store.state.only) ? words.some(speech.told(total!)) : total!.asked ? words.allWeighted(speech.rough(total!.trips), speech.number(total!.asked.trips)) : this.noisy ? words.allNoise(speech.rough(total!.trips)) : words.all(speech.number(total!.trips));
      return capital([first, ...(tops.length > 2 ? [words.mostEnd(speech.listed(tops))] : [])]);
    }
    const own = from >= 0 ? from : to;
    const first = from >= 0 ? words.starts(speech.told(total!), name(own)) : words.ends(speech.told(total!), name(own));
    const stays = stay && speech.share(stay, total!);
    const top = list.find(({ place }) => place !== own);
    const share = top && speech.share(top, total!);
    const goes = !top ? null : from >= 0 ? (share ? words.go(share, name(top.place)) : words.goMost(name(top.place))) : share ? words.come(share, name(top.place)) : words.comeMost(name(top.place));
    const others = [stays ? words.stay(stays) : null, goes].filter((one): one is string => !!one);
    return capital([`${first}.`, ...(others.length ? [`${others.join("; ")}.`] : [])]);
  }

  /** Whether all numbers are estimates from counts with noise, which bound nothing for certain. */
  private get noisy(): boolean {
    return noiseOf(this.model.releases[0]!.about.parameters) !== null;
  }

  /** The bounds that hold whatever the truth is. */
  private certainly(total: Numbers): string {
    const { words, number } = this.speech;
    const { low, high } = total.asked ?? total;
    if (this.noisy) return words.noisy;
    if (boundless({ low, high })) return words.nothingCertain;
    const bounds = words.certainly(number(low), Number.isFinite(high) ? number(high) : null);
    return total.asked ? words.certainlyAsked(bounds.charAt(0).toLocaleLowerCase() + bounds.slice(1)) : bounds;
  }

  /** How much of what is seen is certain, and in which words. */
  private known({ total, list }: Answer): CardContent["known"] {
    if (!total || total.trips <= 0) return null;
    const { words, percent, listed: join } = this.speech;
    const { from, to } = this.question;
    const [all, pair] = [from < 0 && to < 0, from >= 0 && to >= 0];
    const { low, high, trips } = total.asked ?? total;
    const certain = Math.min(1, (all ? this.table().certain : low) / Math.max(trips, 1e-9));
    if (all ? certain > 0.9995 : low === high && !total.asked) return { sharp: 1, medium: 0, text: words.allSure, sure: "", bounds: null };
    const { sharp, medium, blurred } = sharesOf(pair ? [total] : list);
    const parts = ([["sharp", sharp], ["medium", medium], ["blurred", blurred]] as const).filter(([, share]) => share > 0.005);
    const known = pair ? words.known[knownAs(total)] : join(parts.map(([kind, share]) => (share > 0.995 ? words.known[kind] : `${percent(share)} ${words.known[kind]}`)));
    const none = this.noisy ? words.noisy : all ? words.noneSureBetween : words.noneSure;
    const some = all ? words.sureBetween(percent(certain)) : words.sure(percent(certain));
    const sure = certain > 0.9995 ? words.allSure : certain < 0.005 ? none : some;
    return { sharp, medium, text: words.knownHere(known), sure, bounds: all || this.noisy || (pair && !boundless({ low, high })) ? null : this.certainly(total) };
  }

  private tellChange([first, second]: [Table, Table]): void {
    const { speech, question, level } = this;
    const { words } = speech;
    const name = (place: number): string => level.title(place, speech);
    const [before, after] = [first, second].map((table) => answer(question, table).total ?? { trips: 0, low: 0, high: Infinity, interval_low: 0, interval_high: table.least }) as [Numbers, Numbers];
    const asked = question.from >= 0 || question.to >= 0;
    const by = Math.round(after.trips - before.trips);
    const size = (change: number, { asked }: Numbers): string => (asked ? speech.rough : speech.number)(Math.round(Math.abs(change)));
    const signed = `${by > 0 ? "+" : by < 0 ? "−" : "±"}${size(by, after)}`;
    const verdict = certainty(before, after);
    const filtered = keyOf(this.store.state.only) !== "";
    const names = this.pairOfReleases!.map((one) => this.model.releases[one]!.name) as [string, string];
    const [then, now] = [before.asked ?? before, after.asked ?? after];
    const same = !asked && !filtered && Math.abs(now.trips - then.trips) <= Math.max(then.high - then.low, now.high - now.low);
    const told = (total: Numbers): Told => (filtered ? speech.told(total) : { about: total.asked ? speech.rough(total.trips) : speech.number(total.trips), between: "", exact: !total.asked });
    const list = placeChanges(question, first, second).filter((one) => Math.round(Math.abs(one.by)) >= 1);
    const shown = list.slice(0, 40);
    const most = Math.max(1, ...shown.map((one) => Math.abs(one.by)));
    const sentences = asked ? [words.changePair(speech.told(before), speech.told(after), signed), words.verdict[verdict]] : [words.changeAll(told(before), told(after), ...names), ...(same ? [then.trips === now.trips ? words.same : words.maybeSame] : [])];
    this.card.draw(
      {
        title: asked ? this.title() : words.changeOf(...names),
        about: this.about(),
        from: question.from < 0 ? null : name(question.from),
        to: question.to < 0 ? null : name(question.to),
        sentences: capital(sentences),
        known: null,
        heading: words.listChange,
        list: shown.map((entry) => {
          const { by: change, place } = entry;
          const sure = entry.before && certainty(entry.before, entry) !== "unsure";
          return { entry, name: name(place), number: `${change > 0 ? "+" : "−"}${size(change, entry)}`, share: Math.abs(change) / most, sure: 0, sign: Math.sign(change), faint: !sure };
        }),
        more: list.length - shown.length,
      },
      speech,
    );
  }

  private attributes(): Attribute[] {
    const { release, only, from, to } = this.store.state;
    const question = this.question;
    return (this.model.releases[release]!.about.axes ?? []).flatMap((axis): Attribute[] => {
      const { [axis.name]: chosen, ...others } = only;
      const values = axis.levels[0]!.flatMap((value) => {
        const one = { [axis.name]: value };
        const here = this.level.table(release, { ...others, ...one }, this.weighted) ?? this.level.table(release, one, this.weighted);
        const table = here ?? this.coarser(release, one);
        if (!table) return [];
        const own = here !== null;
        const total = own && (from ?? to) ? answer(question, table).total : table.total;
        return [{ value, numbers: total ?? { trips: 0, low: 0, high: 0, interval_low: 0, interval_high: 0 } }];
      });
      return values.length ? [{ name: axis.name, values, chosen: chosen ?? null }] : [];
    });
  }

  private coarser(release: number, only: State["only"]): Table | null {
    return this.model.levels.map((level) => level.table(release, only, this.weighted)).find((table) => table !== null) ?? null;
  }

  private drawTools(): void {
    const { state } = this.store;
    const views: State["view"][] = ["flows", "matrix", ...(this.isSeries ? (["change"] as const) : [])];
    const hasRough = this.model.releases[state.release]!.rough.length > 0;
    this.tools.draw(state, { views, dark: isDark(state.theme), hasWeights: this.hasWeights, hasRough }, this.speech);
  }

  /** Which of several releases is shown. */
  private drawSwitcher(): void {
    const { releases } = this.model;
    const { release, view } = this.store.state;
    const first = view === "change" ? 1 : 0;
    this.switcher.hidden = releases.length - first < 2;
    if (this.switcher.hidden) return;
    const focused = this.switcher.contains(document.activeElement);
    const slider = h("input", { type: "range", min: first, max: releases.length - 1, step: 1, value: Math.max(first, release), "aria-label": this.speech.words.show, "aria-valuetext": releases[release]!.name });
    slider.addEventListener("input", () => this.store.set({ release: Number(slider.value) }));
    const totals = releases.map((_, one) => answer(this.question, this.table(one)).total);
    const line = this.isSeries && releases.length > 2 && sparkline(releases.map(({ name }) => name), totals, Math.max(first, release), this.speech);
    replace(this.switcher, h("output", {}, releases[Math.max(first, release)]!.name), slider, line);
    if (focused) slider.focus();
  }

  private point(flow: Line | null, at: Point): Pointed | null {
    const { level, speech } = this;
    const { words } = speech;
    const title = (place: number): string => level.title(place, speech);
    if (flow) {
      const [origin, destination] = flow.ends;
      const change = this.compared && this.shownChanges.find((one) => one.origin === origin && one.destination === destination);
      if (change) {
        const size = change.after.asked ? speech.rough : speech.number;
        const by = `${change.by > 0 ? "+" : "−"}${size(Math.abs(Math.round(change.by)))}`;
        return { lines: [words.titlePair(title(origin), title(destination)), words.changePair(speech.told(change.before), speech.told({ ...change.after }), by), words.verdict[change.certainty]], outline: [] };
      }
      const numbers = this.table().pair(origin, destination);
      return numbers && { lines: [words.titlePair(title(origin), title(destination)), words.tipTrips(speech.told(numbers))], outline: [] };
    }
    const place = level.at(at);
    if (place < 0) return null;
    const { from, to } = this.question;
    const table = this.table();
    const pair = from >= 0 ? table.pair(from, place) : to >= 0 ? table.pair(place, to) : null;
    const lines =
      from >= 0 || to >= 0
        ? [words.titlePair(title(from >= 0 ? from : place), title(from >= 0 ? place : to)), pair ? words.tipTrips(speech.told(pair)) : `< ${speech.number(Math.max(1, Math.ceil(table.least)))}`]
        : [title(place), words.tipStart(speech.told(table.starts(place)).about), words.tipEnd(speech.told(table.ends(place)).about)];
    return { lines, outline: level.polygons[place]! };
  }

  // What can be taken along

  private writeHash(): void {
    const { state } = this.store;
    const { longitude, latitude, zoom } = this.maps.camera.view;
    const hash = toHash(state, this.maps.camera.isMoved ? { longitude, latitude, zoom } : null, this.first);
    if (hash === this.hash) return;
    this.hash = hash;
    try {
      history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
    } catch {
      // In the frame of a notebook there is no address.
    }
  }

  private hash = "";

  private readHash(): void {
    if (location.hash.slice(1) === this.hash) return;
    const given = fromHash(location.hash);
    this.store.set(this.valid({ ...this.first, ...given.state }));
    if (given.view) this.maps.camera.move(given.view);
  }

  private rows(): Row[] {
    const { level, speech, question } = this;
    const { table, compared } = { table: this.table(), compared: this.compared };
    const title = (place: number): [string, string] => [level.id[place]!, level.title(place, speech)];
    if (compared) return changes(question, ...compared, MOST_CHANGES).map(({ origin, destination, before, after, certainty: sure }) => ({ from: title(origin), to: title(destination), numbers: after, before, certainty: sure }));
    const places = this.store.state.view === "matrix" ? new Set(this.matrix.places(level, table, speech)) : null;
    const keep = places ? ({ origin, destination }: { origin: number; destination: number }) => places.has(origin) && places.has(destination) : ({ origin, destination }: { origin: number; destination: number }) => (question.from < 0 || origin === question.from) && (question.to < 0 || destination === question.to);
    return table.largest(Infinity, keep).map((flow) => ({ from: title(flow.origin), to: title(flow.destination), numbers: flow }));
  }

  private csv(): void {
    download(new Blob([`\uFEFF${flowsAsCsv(this.rows(), this.store.state.only)}`], { type: "text/csv" }), `${this.fileName()}.csv`);
  }

  private png(): void {
    const { speech } = this;
    const { source, period, licence } = this.model.titles;
    const canvas = this.maps.drawn();
    const picture = pictureOf(canvas, this.maps.element, this.maps.labels.written, {
      title: this.title(),
      lines: [...this.sentences_(), [source, period, licence].filter(Boolean).join(" · ")].filter(Boolean),
      colours: { ink: css(this.root, "--ink"), card: css(this.root, "--card"), sea: css(this.root, "--sea") },
      widths: this.city ? [this.city.most, this.city.most / 5, this.city.most / 25].map((size) => ({ text: speech.number(size), width: widthOf(size, this.city!.most) })) : [],
    });
    picture.toBlob((blob) => blob && download(blob, `${this.fileName()}.png`));
  }

  private sentences_(): string[] {
    return [this.root.querySelector(".say")?.textContent ?? ""];
  }

  private fileName = (): string => plain(this.title()).replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "trips";
}

/** Whether nothing is certain about a number. */
const boundless = ({ low, high }: Pick<Numbers, "low" | "high">): boolean => low <= 0 && !Number.isFinite(high);

/** The shares of some numbers that are known sharply, fairly and hardly, by their sizes. */
function sharesOf(numbers: Numbers[]): Record<"sharp" | "medium" | "blurred", number> {
  const found = { sharp: 0, medium: 0, blurred: 0 };
  const sum = numbers.reduce((all, { trips }) => all + trips, 0);
  for (const one of numbers) found[knownAs(one)] += one.trips / Math.max(sum, 1e-9);
  return found;
}

const css = (element: Element, name: string): string => getComputedStyle(element).getPropertyValue(name).trim();

const capital = ([first, ...others]: string[]): string[] => [first!, ...others].map((one) => one.charAt(0).toLocaleUpperCase() + one.slice(1));

function quantile(values: number[], share: number): number {
  const sorted = values.filter((value) => value > 0).sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 1;
}

/** The bounds of the middle of all trips in either direction; a far-off place or two should not shrink the city to a dot. */
function heart(level: Level, table: Table): Bounds | null {
  const places = level.id.flatMap((_, place): [Point, number][] => (level.centre[place] ? [[level.centre[place], table.starts(place).trips + table.ends(place).trips]] : []));
  if (places.length < 2) return null;
  const [x, y] = ([0, 1] as const).map((side) => {
    const sorted = places.map(([centre, trips]) => [centre[side], trips] as const).sort((a, b) => a[0] - b[0]);
    const total = sorted.reduce((sum, [, trips]) => sum + trips, 0);
    let seen = 0;
    const found = sorted.filter(([, trips]) => {
      const before = seen;
      seen += trips;
      return seen > TAIL * total && before < (1 - TAIL) * total;
    });
    return [found[0]?.[0] ?? sorted[0]![0], found.at(-1)?.[0] ?? sorted.at(-1)![0]];
  }) as [[number, number], [number, number]];
  // Half a place more on each side: districts at the edge of a city can be as large as all others.
  const half = Math.sqrt(level.typical) / 2 / KM_PER_DEGREE;
  const wide = half / Math.cos((y[0] * Math.PI) / 180);
  return [[x[0] - wide, y[0] - half], [x[1] + wide, y[1] + half]];
}

async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", { class: "hidden" }, text);
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
