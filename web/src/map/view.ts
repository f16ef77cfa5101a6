/** The map: one deck.gl canvas that fills the window, with names, tip, scale bar and keys. */

import { Deck, MapView, WebMercatorViewport, type Layer, type PickingInfo } from "@deck.gl/core";
import { h, replace, svg } from "../dom";
import type { Bounds, Point, Polygon } from "../geometry";
import { Camera, type Room, type ViewState } from "./camera";
import { lookAtWebGL } from "./flat";
import { Labels, type Label } from "./labels";
import { Paper } from "./paper";
import { scaleBar } from "./ruler";
import { Tip, type Pointed } from "./tip";

export interface Handlers {
  /** What is said of the thing at a place, or of the flow under the pointer. */
  point: (flow: unknown, place: Point) => Pointed | null;
  click: (place: Point) => void;
  /** Escape was pressed on the map. */
  leave: () => void;
  /** The view changed. */
  moved: (view: ViewState, byHand: boolean) => void;
  /** The cards that lie on the map. */
  padding: () => Room["padding"];
}

export interface MapWords {
  map: string;
  zoomIn: string;
  zoomOut: string;
  everywhere: string;
  noWebGL: string;
  noShapes: string;
  clickFirst: string;
}

const ARROWS: Record<string, Point> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const ZOOMS: Record<string, number> = { "+": 0.5, "=": 0.5, "-": -0.5 };

/** A drawing instead of a sign, which not every font has. */
const icon = (path: string): SVGElement => svg("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" }, svg("path", { d: path }));

export class Maps {
  readonly element = h("div", { class: "maps", tabindex: 0, role: "application" });
  readonly camera = new Camera(() => this.room(), (view, byHand) => this.look(view, byHand));
  readonly labels = new Labels();
  private readonly canvas = h("div", { class: "canvas" });
  private readonly paper = new Paper(this.element);
  private readonly tip = new Tip();
  private readonly note = h("p", { class: "failed", hidden: true });
  private readonly nudge = h("div", { class: "nudge", hidden: true });
  private readonly ruler = h("div", { class: "ruler", "data-card": "ruler" });
  private readonly zoom = h("div", { class: "zoom" });
  private deck: Deck<MapView> | null = null;
  private words: MapWords | null = null;
  private failed = false;
  private afterwards: (() => void) | null = null;

  constructor(private readonly handlers: Handlers, private readonly embedded: boolean) {
    replace(this.element, this.canvas, this.paper.element, this.tip.outline, this.labels.element, h("i", { class: "cross" }), this.tip.element, this.nudge, this.note, this.ruler, this.zoom);
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("pointerdown", () => this.element.focus({ preventScroll: true }));
    this.element.addEventListener("pointerleave", () => this.tip.hide());
    this.element.addEventListener("blur", () => this.tip.hide());
    this.element.addEventListener("wheel", (event) => this.wheel(event), { capture: true, passive: true });
  }

  /** Sets the words of the map. */
  speak(words: MapWords): void {
    this.words = words;
    this.element.setAttribute("aria-label", words.map);
    this.nudge.textContent = words.clickFirst;
    const button = (title: string, path: string, onclick: () => void): HTMLElement => h("button", { type: "button", "aria-label": title, title, onclick }, icon(path));
    replace(
      this.zoom,
      button(words.zoomIn, "M8 3v10M3 8h10", () => this.camera.zoomBy(1)),
      button(words.zoomOut, "M3 8h10", () => this.camera.zoomBy(-1)),
      button(words.everywhere, "M3 6V3h3M10 3h3v3M13 10v3h-3M6 13H3v-3", () => this.camera.fit()),
    );
    this.tellProblem();
  }

  private tellProblem(): void {
    const text = this.failed ? this.words?.noWebGL : this.camera.bounds ? null : this.words?.noShapes;
    this.note.hidden = !text;
    this.note.textContent = text ?? "";
  }

  /** Starts drawing; call once the element is in the page. */
  start(): void {
    new ResizeObserver(() => this.resize()).observe(this.element);
    this.paper.follow();
    // Asked before the map is made: a browser that cannot draw says so in many different ways later.
    const renderer = lookAtWebGL();
    if (renderer === "none") return this.fail();
    const controller = { keyboard: false, dragRotate: false, touchRotate: false, scrollZoom: { speed: 0.01, smooth: false } };
    this.deck = new Deck({
      parent: this.canvas as HTMLDivElement,
      views: new MapView({ id: "map", controller }),
      viewState: this.camera.view as never,
      layers: [],
      useDevicePixels: true,
      pickingRadius: 4,
      // Looking up what lies under the pointer can take a while without a graphics card: still a click.
      eventRecognizerOptions: { click: { time: 3000 } },
      deviceProps: { type: "webgl", webgl: { preserveDrawingBuffer: true, antialias: renderer === "card" } },
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
      getCursor: ({ isDragging }) => (isDragging ? "grabbing" : "pointer"),
    });
  }

  /** Sets where the view starts and how far it can go out. */
  show(bounds: Bounds | null, heart: Bounds | null): void {
    this.camera.hold(bounds, heart);
    this.camera.settle();
    this.tellProblem();
  }

  draw(layers: Layer[], labels: Label[]): void {
    // What the pointer was on may be gone.
    this.tip.hide();
    this.labels.set(labels);
    this.deck?.setProps({ layers });
    this.write();
  }

  private write(): void {
    const room = this.room();
    if (room) this.labels.write(this.camera.view, room, this.element);
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
    this.flush();
    this.paper.copy(this.drawn());
  }

  private flush(): void {
    const deck = this.deck as unknown as { layerManager?: { updateLayers: () => void } } | null;
    deck?.layerManager?.updateLayers();
    this.deck?.redraw("print");
  }

  /** The canvas as it is now; null where nothing can be drawn. */
  drawn(): HTMLCanvasElement | null {
    this.flush();
    return this.canvas.querySelector("canvas");
  }

  private room(): Room | null {
    const { clientWidth: width, clientHeight: height } = this.element;
    return width && height ? { width, height, padding: this.handlers.padding() } : null;
  }

  private viewport(): WebMercatorViewport {
    return new WebMercatorViewport({ ...this.camera.view, width: this.element.clientWidth, height: this.element.clientHeight });
  }

  /** Where a place appears, in pixels of the page. */
  project(place: Point): Point {
    const [x, y] = this.viewport().project(place) as Point;
    const frame = this.element.getBoundingClientRect();
    return [frame.left + x, frame.top + y];
  }

  private look(view: ViewState, byHand: boolean): void {
    this.tip.hide();
    const { pixels, text } = scaleBar(view.zoom, view.latitude);
    this.ruler.style.width = `${pixels}px`;
    if (this.ruler.textContent !== text) this.ruler.textContent = text;
    this.deck?.setProps({ viewState: view as never });
    this.handlers.moved(view, byHand);
    this.write();
  }

  private resize(): void {
    // On paper the map keeps the shape that it has on the screen, and so the places of its names.
    if (this.element.style.zoom) return;
    this.camera.settle();
    this.write();
  }

  private hover(info: PickingInfo): void {
    if (!info.coordinate) return this.tip.hide();
    this.point(info.object, info.coordinate as Point, [info.x, info.y]);
  }

  private point(flow: unknown, place: Point, at: Point): void {
    const pointed = this.handlers.point(flow, place);
    if (pointed) this.tip.show(pointed, at, this.viewport());
    else this.tip.hide();
  }

  /** Outlines a place until the pointer is on the map or the view changes. */
  mark(outline: Polygon[]): void {
    this.tip.hide();
    this.tip.draw(outline, this.viewport());
  }

  private pick(info: PickingInfo): void {
    if (info.coordinate) this.handlers.click(info.coordinate as Point);
  }

  private key(event: KeyboardEvent): void {
    if (event.target !== this.element || event.ctrlKey || event.metaKey) return;
    const { longitude, latitude } = this.camera.view;
    if (event.key in ARROWS) this.camera.step(ARROWS[event.key]!);
    else if (event.key in ZOOMS) this.camera.zoomBy(ZOOMS[event.key]!);
    else if (event.key === "0") this.camera.fit();
    else if (event.key === "Enter") this.handlers.click([longitude, latitude]);
    else if (event.key === "Escape") this.handlers.leave();
    else return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key in ARROWS || event.key in ZOOMS) {
      const { longitude: x, latitude: y } = this.camera.view;
      this.point(null, [x, y], [this.element.clientWidth / 2, this.element.clientHeight / 2]);
    }
  }

  /** A page around an embedded map must not be caught by it: the wheel zooms only once the map was clicked. */
  private wheel(event: WheelEvent): void {
    if (!this.embedded || event.ctrlKey || event.metaKey || this.element.contains(document.activeElement)) return;
    event.stopPropagation();
    this.nudge.hidden = false;
    setTimeout(() => (this.nudge.hidden = true), 1200);
  }

  private fail(error?: Error): void {
    if (this.failed) return;
    if (error) console.warn(error.message);
    this.failed = true;
    this.tellProblem();
  }
}
