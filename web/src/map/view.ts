/** One deck.gl canvas with a view for each panel; all views move together. */

import { Deck, MapView, WebMercatorViewport, type Layer, type PickingInfo } from "@deck.gl/core";
import { h, replace, svg } from "../dom";
import type { Bounds, Point } from "../geometry";
import { lookAtWebGL } from "./flat";
import { scaleBar } from "./ruler";
import { placed, type Rectangle, type ViewState } from "./labels";
import type { Label } from "./places";
import { Pointer } from "./pointer";
import type { Panel } from "./shading";
import type { Pointed } from "./tooltip";

export interface Handlers {
  point: (panel: Panel, layer: string, object: unknown) => Pointed | null;
  click: (panel: Panel, layer: string, object: unknown, place: Point | null) => void;
  /** Escape was pressed on the map. */
  leave: () => void;
}

const ARROWS: Record<string, Point> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const ZOOMS: Record<string, number> = { "+": 0.5, "=": 0.5, "-": -0.5 };
const GAP = 6;
const NARROW = 620;
const PAPER = 640;
/** How much of the window's height a map takes. */
const TALL = 0.72;
/** This share of a panel on each side is its edge. */
const EDGE = 0.22;

/** A drawing instead of a sign, which not every font has. */
const icon = (path: string): SVGElement => svg("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" }, svg("path", { d: path }));

export class Maps {
  readonly element: HTMLElement;
  private readonly canvas = h("div", { class: "canvas" });
  private readonly titles = h("div", { class: "titles" });
  private readonly names = h("div", { class: "names", "aria-hidden": "true" });
  private readonly paper = h("div", { "aria-hidden": "true" });
  private labels: Label[] = [];
  private readonly tip = h("div", { class: "tip", hidden: true, role: "status" });
  private readonly pointer = new Pointer();
  private readonly nudge = h("div", { class: "nudge", hidden: true }, "Click the map first, then scroll to zoom");
  private readonly ruler = h("div", { class: "ruler" });
  private deck: Deck<MapView[]> | null = null;
  private view: ViewState = { longitude: 0, latitude: 0, zoom: 1, minZoom: 0, maxZoom: 17 };
  private panels: (Panel & { title: string })[] = [];
  private rectangles: Rectangle[] = [];
  private bounds: Bounds | null = null;
  private heart: Bounds | null = null;
  private share = TALL;
  private moved = false;
  private failed = false;
  private afterwards: (() => void) | null = null;

  constructor(private readonly handlers: Handlers) {
    this.element = h(
      "div",
      {
        class: "maps",
        tabindex: 0,
        role: "application",
        "aria-label":
          "Map of the zones. Arrow keys move it, plus and minus zoom, 0 shows everything, Enter chooses what is in the middle, Escape lets go. The same zones are in the list.",
        onkeydown: (event: KeyboardEvent) => this.key(event),
        onpointerdown: () => this.element.focus({ preventScroll: true }),
        onpointerleave: () => this.unpoint(),
        onblur: () => this.unpoint(),
      },
      this.canvas,
      this.paper,
      this.pointer.element,
      this.names,
      this.titles,
      this.tip,
      this.nudge,
      this.ruler,
      h(
        "div",
        { class: "zoom" },
        h("button", { type: "button", "aria-label": "Zoom in", onclick: () => this.zoomBy(1) }, icon("M8 3v10M3 8h10")),
        h("button", { type: "button", "aria-label": "Zoom out", onclick: () => this.zoomBy(-1) }, icon("M3 8h10")),
        h("button", { type: "button", "aria-label": "Show everything", title: "Show everything", onclick: () => this.fit() }, icon("M3 6V3h3M10 3h3v3M13 10v3h-3M6 13H3v-3")),
      ),
    );
    this.element.addEventListener("wheel", (event) => this.wheel(event), { capture: true, passive: true });
  }

  /** Paper is narrower than a screen: the picture is scaled down as it is, not squeezed. */
  private fitPaper(printing: boolean): void {
    const width = this.element.clientWidth;
    const scale = Math.min(1, PAPER / width);
    Object.assign(this.element.style, printing ? { width: `${width}px`, zoom: String(scale) } : { width: "", zoom: "" });
  }

  /** Starts drawing; call once the element is in the page. */
  start(): void {
    new ResizeObserver(() => this.layout()).observe(this.element);
    addEventListener("beforeprint", () => this.fitPaper(true));
    addEventListener("afterprint", () => {
      this.fitPaper(false);
      replace(this.paper);
    });
    // Asked before the map is made: a browser that cannot draw says so in many different ways later.
    const renderer = lookAtWebGL();
    if (renderer === "none") return this.fail();
    this.deck = new Deck({
      parent: this.canvas as HTMLDivElement,
      views: [],
      viewState: this.view as never,
      layers: [],
      useDevicePixels: true,
      pickingRadius: 3,
      // Looking up what lies under the pointer can take a while without a graphics card: still a click.
      eventRecognizerOptions: { click: { time: 3000 } },
      deviceProps: { type: "webgl", webgl: { preserveDrawingBuffer: true, antialias: renderer === "card" } },
      layerFilter: ({ layer, viewport }) => {
        const scope = layer.id.slice(0, layer.id.indexOf("/"));
        return scope === "all" || scope === viewport.id || viewport.id.startsWith(`${scope}-`);
      },
      // Without a hand on it, a view changes only because its panel did: that is not the reader's wish.
      onViewStateChange: ({ viewState, interactionState }) => {
        if (Object.values(interactionState).some(Boolean)) this.move(viewState as unknown as ViewState);
      },
      onHover: (info) => this.hover(info),
      onClick: (info) => this.pick(info),
      onAfterRender: () => {
        this.element.setAttribute("data-drawn", String(performance.now()));
        this.finish();
      },
      onError: (error) => this.fail(error),
      // The map itself takes the keys; a second stop without a name would only be in the way.
      onLoad: () => this.canvas.querySelectorAll("canvas").forEach((canvas) => (canvas.tabIndex = -1)),
      getCursor: ({ isDragging, isHovering }) => (isDragging ? "grabbing" : isHovering ? "pointer" : "grab"),
    });
  }

  /** Sets the panels, each up to a share of the window high; the view starts at `heart` (or everything) and can go out to `bounds`. */
  show(panels: (Panel & { title: string })[], bounds: Bounds | null, heart: Bounds | null = null, share = TALL): void {
    this.panels = panels;
    this.share = share;
    this.bounds = bounds;
    this.heart = heart;
    this.layout();
  }

  /** The next panels start where most trips are, wherever the reader was. */
  startAnew(): void {
    this.moved = false;
  }

  /** From now on the view is the reader's: new zones do not move it. */
  stay(): void {
    this.moved = true;
  }

  draw(layers: Layer[], labels: Label[] = []): void {
    // What the pointer was on may be gone.
    this.unpoint();
    this.labels = labels;
    this.deck?.setProps({ layers });
    this.write();
  }

  /** Does something once what is drawn now can be seen: without a graphics card, text and map wait for each other. */
  after(work: () => void): void {
    this.afterwards = work;
    if (!this.deck || this.failed) this.finish();
  }

  private finish(): void {
    const work = this.afterwards;
    this.afterwards = null;
    if (work) requestAnimationFrame(() => setTimeout(work));
  }

  /** Draws at once instead of with the next frame: paper does not wait for one. */
  drawNow(): void {
    const deck = this.deck as unknown as { layerManager?: { updateLayers: () => void } } | null;
    deck?.layerManager?.updateLayers();
    this.deck?.redraw("print");
    this.copyForPaper();
  }

  /** What is printed of a canvas with a graphics card behind it is its last frame on the screen: a plain copy is up to date. */
  private copyForPaper(): void {
    const drawn = this.canvas.querySelector("canvas");
    if (!drawn) return;
    const copy = h("canvas", { class: "paper", width: drawn.width, height: drawn.height });
    copy.getContext("2d")!.drawImage(drawn, 0, 0);
    replace(this.paper, copy);
  }

  private write(): void {
    replace(this.names, ...placed(this.labels, this.view, this.rectangles));
  }

  /** Where a place appears inside a panel, in pixels of the page. */
  project(panelId: string, place: Point): Point | null {
    const number = this.panels.findIndex((panel) => panel.id === panelId);
    const rectangle = this.rectangles[number];
    if (!rectangle) return null;
    const viewport = new WebMercatorViewport({ ...this.view, ...rectangle });
    const [x, y] = viewport.project(place) as Point;
    const frame = this.canvas.getBoundingClientRect();
    return [frame.left + rectangle.x + x, frame.top + rectangle.y + y];
  }

  /** Shows everything, or the given part of it. */
  fit(part: Bounds | null = this.bounds): void {
    const rectangle = this.rectangles[0];
    if (!rectangle || !this.bounds || !part) return;
    const viewport = new WebMercatorViewport({ width: rectangle.width, height: rectangle.height });
    const padding = Math.min(36, rectangle.width / 8, rectangle.height / 8);
    const [whole, shown] = [this.bounds, part].map((bounds) => viewport.fitBounds(bounds, { padding, maxZoom: 15 }));
    const { longitude, latitude, zoom } = shown!;
    this.place({ longitude, latitude, zoom, minZoom: Math.max(0, whole!.zoom - 1.5), maxZoom: 17 });
  }

  /** Moves a place that was found by its name, or lies at the edge, into the middle. */
  reveal(place: Point): void {
    const rectangle = this.rectangles[0];
    if (!rectangle) return;
    const [x, y] = new WebMercatorViewport({ ...this.view, ...rectangle }).project(place) as Point;
    const inside = (at: number, size: number): boolean => at > size * EDGE && at < size * (1 - EDGE);
    if (!inside(x, rectangle.width) || !inside(y, rectangle.height)) this.move({ ...this.view, longitude: place[0], latitude: place[1] });
  }

  zoomBy(steps: number): void {
    this.move({ ...this.view, zoom: this.view.zoom + steps });
  }

  private move(next: ViewState): void {
    this.moved = true;
    const { minZoom, maxZoom } = this.view;
    const zoom = Math.min(maxZoom, Math.max(minZoom, next.zoom));
    let { longitude, latitude } = next;
    if (this.bounds) {
      const [[west, south], [east, north]] = this.bounds;
      longitude = Math.min(east, Math.max(west, longitude));
      latitude = Math.min(north, Math.max(south, latitude));
    }
    this.place({ longitude, latitude, zoom, minZoom, maxZoom });
  }

  private place(view: ViewState): void {
    this.view = view;
    this.unpoint();
    const { pixels, text } = scaleBar(view.zoom, view.latitude);
    this.ruler.style.width = `${pixels}px`;
    this.ruler.textContent = text;
    this.deck?.setProps({ viewState: view as never });
    this.write();
  }

  /** One map for each value of an attribute: many, and small. */
  private get small(): boolean {
    return this.panels.some(({ value }) => value !== undefined);
  }

  private columns(width: number): number {
    const many = this.panels.length;
    if (this.small) {
      const most = Math.min(many, width < NARROW ? 2 : width < 900 ? 3 : 4);
      return most > 2 && many % most === 1 ? most - 1 : most;
    }
    if (width < NARROW || many === 1) return 1;
    const releases = new Set(this.panels.map((panel) => panel.release)).size;
    return releases === 1 ? 2 : Math.min(releases, width > 900 ? 3 : 2);
  }

  private layout(): void {
    const { clientWidth: width } = this.element;
    if (!width || !this.panels.length) return;
    const columns = this.columns(width);
    const rows = Math.ceil(this.panels.length / columns);
    const each = (width - GAP * (columns - 1)) / columns;
    const tallest = Math.max(300, Math.min(620, window.innerHeight * (rows > 1 ? 0.55 : this.share)));
    const height = Math.round(this.small ? Math.min(320, Math.max(150, each * 0.8)) : Math.max(Math.min(tallest, each * 1.05), Math.min(tallest, 300)));
    this.element.style.height = `${height * rows + GAP * (rows - 1)}px`;
    this.rectangles = this.panels.map((_, i) => ({
      x: (i % columns) * (each + GAP),
      y: Math.floor(i / columns) * (height + GAP),
      width: each,
      height,
    }));
    const views = this.panels.map(
      (panel, i) =>
        new MapView({
          id: panel.id,
          ...this.rectangles[i]!,
          controller: { keyboard: false, dragRotate: false, touchRotate: false, scrollZoom: { speed: 0.01, smooth: false } },
        }),
    );
    this.deck?.setProps({ views });
    const empty = !this.bounds && h("p", { class: "failed" }, "These zones have no shapes to draw. They are in the list, with all their flows.");
    replace(this.titles, ...this.panels.map((panel, i) => this.title(panel.title, i)), empty);
    if (!this.moved) this.fit(this.heart ?? this.bounds);
    this.write();
  }

  private title(text: string, number: number): HTMLElement {
    const { x, y, width, height } = this.rectangles[number]!;
    const frame = h("div", { class: "frame" }, h("span", {}, text), number === 0 && h("i", { class: "cross" }));
    Object.assign(frame.style, { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` });
    return frame;
  }

  private panelOf(info: PickingInfo): Panel | undefined {
    return this.panels.find((panel) => panel.id === info.viewport?.id);
  }

  private hover(info: PickingInfo): void {
    const panel = this.panelOf(info);
    this.point(panel && info.object ? this.handlers.point(panel, info.layer?.id ?? "", info.object) : null, [info.x, info.y], panel);
  }

  /** Tells what lies in the middle of the first panel: where the keyboard points. */
  private pointMiddle(): void {
    const panel = this.panels[0];
    const [x, y] = this.middle();
    const found = panel && this.deck?.pickObject({ x, y });
    if (panel && found?.object) this.point(this.handlers.point(panel, found.layer?.id ?? "", found.object), [x, y], panel);
  }

  private point(pointed: Pointed | null, [x, y]: Point, panel: Panel | undefined): void {
    const number = this.panels.findIndex(({ id }) => id === panel?.id);
    if (!pointed || number < 0) return this.unpoint();
    const rectangle = this.rectangles[number]!;
    this.pointer.show(pointed.outline, new WebMercatorViewport({ ...this.view, ...rectangle }), rectangle);
    this.tip.hidden = false;
    replace(this.tip, ...pointed.lines.map((line, i) => h(i ? "div" : "strong", {}, line)));
    const { clientWidth, clientHeight } = this.element;
    const { offsetWidth, offsetHeight } = this.tip;
    const left = Math.max(4, Math.min(x + 14, clientWidth - offsetWidth - 4));
    const below = y + 14 + offsetHeight <= clientHeight;
    Object.assign(this.tip.style, { left: `${left}px`, top: `${below ? y + 14 : Math.max(0, y - offsetHeight - 8)}px` });
  }

  private unpoint(): void {
    this.tip.hidden = true;
    this.pointer.hide();
  }

  /** The middle of the first panel. */
  private middle(): Point {
    const { x, y, width, height } = this.rectangles[0] ?? { x: 0, y: 0, width: 0, height: 0 };
    return [x + width / 2, y + height / 2];
  }

  private pick(info: PickingInfo): void {
    const panel = this.panelOf(info);
    if (!panel) return;
    // An arrow must not stand in the way of the zone below it.
    const layerIds = [`${panel.id}/fill`];
    const zone = info.layer?.id === layerIds[0] ? info : this.deck?.pickObject({ x: info.x, y: info.y, layerIds });
    this.handlers.click(panel, zone?.layer?.id ?? "", zone?.object, (info.coordinate as Point | undefined) ?? null);
  }

  /** Chooses what lies in the middle of the first panel, as a click there would. */
  private pickMiddle(): void {
    const panel = this.panels[0];
    if (!panel) return;
    const [x, y] = this.middle();
    const found = this.deck?.pickObject({ x, y, layerIds: [`${panel.id}/fill`] });
    this.handlers.click(panel, found?.layer?.id ?? "", found?.object, [this.view.longitude, this.view.latitude]);
  }

  private key(event: KeyboardEvent): void {
    const step = (80 / (512 * 2 ** this.view.zoom)) * 360;
    const shift = ([x, y]: Point): void => {
      const north = Math.cos((this.view.latitude * Math.PI) / 180);
      this.move({ ...this.view, longitude: this.view.longitude + x * step, latitude: this.view.latitude + y * step * north });
    };
    if (event.target !== this.element || event.ctrlKey || event.metaKey) return;
    if (event.key in ARROWS) shift(ARROWS[event.key]!);
    else if (event.key in ZOOMS) this.zoomBy(ZOOMS[event.key]!);
    else if (event.key === "0") this.fit();
    else if (event.key === "Enter") this.pickMiddle();
    else if (event.key === "Escape") this.handlers.leave();
    else return;
    event.preventDefault();
    if (event.key in ARROWS || event.key in ZOOMS) this.pointMiddle();
  }

  /** A page that scrolls must not be caught by a map: the wheel zooms only once the map was clicked. */
  private wheel(event: WheelEvent): void {
    if (event.ctrlKey || event.metaKey || this.element.contains(document.activeElement)) return;
    event.stopPropagation();
    this.nudge.hidden = false;
    setTimeout(() => (this.nudge.hidden = true), 1200);
  }

  private fail(error?: Error): void {
    if (this.failed) return;
    if (error) console.warn(error.message);
    this.failed = true;
    this.element.append(h("p", { class: "failed" }, "This browser cannot draw the map (WebGL is off). The numbers and the list of zones are complete without it."));
  }
}
