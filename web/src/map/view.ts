/** One deck.gl canvas with a view for each panel; all views move together. */

import { Deck, MapView, WebMercatorViewport, type Layer, type PickingInfo } from "@deck.gl/core";
import { h, replace, svg } from "../dom";
import type { Bounds, Point } from "../geometry";
import { Camera, type ViewState } from "./camera";
import { lookAtWebGL } from "./flat";
import { Labels, type Label } from "./labels";
import { layoutOf, TALL, type Rectangle, type Titled } from "./layout";
import { Paper } from "./paper";
import { scaleBar } from "./ruler";
import type { Panel } from "./shading";
import { Tip } from "./tip";
import type { Pointed } from "./tooltip";

export interface Handlers {
  point: (panel: Panel, layer: string, object: unknown) => Pointed | null;
  click: (panel: Panel, layer: string, object: unknown, place: Point | null) => void;
  /** Escape was pressed on the map. */
  leave: () => void;
}

const ARROWS: Record<string, Point> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const ZOOMS: Record<string, number> = { "+": 0.5, "=": 0.5, "-": -0.5 };
const WORDS =
  "Map of the zones. Arrow keys move it, plus and minus zoom, 0 shows everything, Enter chooses what is in the middle, Escape lets go. The same zones are in the list.";
const NO_SHAPES = "These zones have no shapes to draw. They are in the list, with all their flows.";
const NO_WEBGL = "This browser cannot draw the map (WebGL is off). The numbers and the list of zones are complete without it.";

/** A drawing instead of a sign, which not every font has. */
const icon = (path: string): SVGElement => svg("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" }, svg("path", { d: path }));

export class Maps {
  readonly element = h("div", { class: "maps", tabindex: 0, role: "application", "aria-label": WORDS });
  readonly camera = new Camera(() => this.rectangles[0], (view) => this.look(view));
  private readonly canvas = h("div", { class: "canvas" });
  private readonly titles = h("div", { class: "titles" });
  private readonly labels = new Labels();
  private readonly paper = new Paper(this.element);
  private readonly tip = new Tip();
  private readonly nudge = h("div", { class: "nudge", hidden: true }, "Click the map first, then scroll to zoom");
  private readonly ruler = h("div", { class: "ruler" });
  private deck: Deck<MapView[]> | null = null;
  private panels: Titled[] = [];
  private rectangles: Rectangle[] = [];
  /** What was laid out last, to leave alone what stays. */
  private laid = "";
  private share = TALL;
  private failed = false;
  private afterwards: (() => void) | null = null;

  constructor(private readonly handlers: Handlers) {
    replace(this.element, this.canvas, this.paper.element, this.tip.outline, this.labels.element, this.titles, this.tip.element, this.nudge, this.ruler, this.buttons());
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("pointerdown", () => this.element.focus({ preventScroll: true }));
    this.element.addEventListener("pointerleave", () => this.tip.hide());
    this.element.addEventListener("blur", () => this.tip.hide());
    this.element.addEventListener("wheel", (event) => this.wheel(event), { capture: true, passive: true });
  }

  private buttons(): HTMLElement {
    const button = (words: string, path: string, onclick: () => void): HTMLElement => h("button", { type: "button", "aria-label": words, title: words, onclick }, icon(path));
    return h(
      "div",
      { class: "zoom" },
      button("Zoom in", "M8 3v10M3 8h10", () => this.camera.zoomBy(1)),
      button("Zoom out", "M3 8h10", () => this.camera.zoomBy(-1)),
      button("Show everything", "M3 6V3h3M10 3h3v3M13 10v3h-3M6 13H3v-3", () => this.camera.fit()),
    );
  }

  /** Starts drawing; call once the element is in the page. */
  start(): void {
    new ResizeObserver(() => this.layout()).observe(this.element);
    this.paper.follow();
    // Asked before the map is made: a browser that cannot draw says so in many different ways later.
    const renderer = lookAtWebGL();
    if (renderer === "none") return this.fail();
    this.deck = new Deck({
      parent: this.canvas as HTMLDivElement,
      views: [],
      viewState: this.camera.view as never,
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
        if (Object.values(interactionState).some(Boolean)) this.camera.move(viewState as unknown as ViewState);
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
  show(panels: Titled[], bounds: Bounds | null, heart: Bounds | null = null, share = TALL): void {
    this.panels = panels;
    this.share = share;
    this.camera.hold(bounds, heart);
    this.layout();
  }

  /** Draws; titles and labels follow with `write`. */
  draw(layers: Layer[], labels: Label[] = []): void {
    // What the pointer was on may be gone.
    this.tip.hide();
    this.labels.set(labels);
    this.deck?.setProps({ layers });
  }

  /** Writes titles and labels. What stays is left alone: a frame that is painted again is painted with all that it holds. */
  write(): void {
    const titles = [...this.titles.querySelectorAll(".frame span")];
    this.panels.forEach(({ title }, i) => titles[i] && titles[i].textContent !== title && (titles[i].textContent = title));
    this.labels.write(this.camera.view, this.rectangles);
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
    this.paper.copy(this.canvas.querySelector("canvas"));
  }

  private viewport(rectangle: Rectangle): WebMercatorViewport {
    return new WebMercatorViewport({ ...this.camera.view, ...rectangle });
  }

  /** Where a place appears inside a panel, in pixels of the page. */
  project(panelId: string, place: Point): Point | null {
    const rectangle = this.rectangles[this.panels.findIndex((panel) => panel.id === panelId)];
    if (!rectangle) return null;
    const [x, y] = this.viewport(rectangle).project(place) as Point;
    const frame = this.canvas.getBoundingClientRect();
    return [frame.left + rectangle.x + x, frame.top + rectangle.y + y];
  }

  private look(view: ViewState): void {
    this.tip.hide();
    const { pixels, text } = scaleBar(view.zoom, view.latitude);
    this.ruler.style.width = `${pixels}px`;
    if (this.ruler.textContent !== text) this.ruler.textContent = text;
    this.deck?.setProps({ viewState: view as never });
    this.write();
  }

  private layout(): void {
    const { clientWidth: width } = this.element;
    if (!width || !this.panels.length) return;
    const { rectangles, height } = layoutOf(this.panels, width, window.innerHeight, this.share);
    this.rectangles = rectangles;
    const laid = JSON.stringify([rectangles, this.panels.map(({ id }) => id), !this.camera.bounds]);
    if (laid !== this.laid) this.lay(height);
    this.laid = laid;
    this.camera.settle();
  }

  private lay(height: number): void {
    this.element.style.height = `${height}px`;
    const controller = { keyboard: false, dragRotate: false, touchRotate: false, scrollZoom: { speed: 0.01, smooth: false } };
    this.deck?.setProps({ views: this.panels.map(({ id }, i) => new MapView({ id, ...this.rectangles[i]!, controller })) });
    const empty = !this.camera.bounds && h("p", { class: "failed" }, NO_SHAPES);
    replace(this.titles, ...this.panels.map(({ title }, i) => this.title(title, i)), empty);
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
    this.point(this.panelOf(info), info, [info.x, info.y]);
  }

  /** Tells what lies in the middle of the first panel: where the keyboard points. */
  private pointMiddle(): void {
    const [x, y] = this.middle();
    const found = this.deck?.pickObject({ x, y });
    if (found?.object) this.point(this.panels[0], found, [x, y]);
  }

  private point(panel: Panel | undefined, { object, layer }: PickingInfo, at: Point): void {
    const rectangle = this.rectangles[this.panels.findIndex(({ id }) => id === panel?.id)];
    const pointed = panel && object ? this.handlers.point(panel, layer?.id ?? "", object) : null;
    if (!pointed || !rectangle) return this.tip.hide();
    this.tip.show(pointed, at, this.viewport(rectangle), rectangle);
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
    this.handlers.click(panel, found?.layer?.id ?? "", found?.object, [this.camera.view.longitude, this.camera.view.latitude]);
  }

  private key(event: KeyboardEvent): void {
    if (event.target !== this.element || event.ctrlKey || event.metaKey) return;
    if (event.key in ARROWS) this.camera.step(ARROWS[event.key]!);
    else if (event.key in ZOOMS) this.camera.zoomBy(ZOOMS[event.key]!);
    else if (event.key === "0") this.camera.fit();
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
    this.element.append(h("p", { class: "failed" }, NO_WEBGL));
  }
}
