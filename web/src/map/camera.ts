/** Which part of the world all maps show, and how far it may be moved. */

import { WebMercatorViewport } from "@deck.gl/core";
import type { Bounds, Point } from "../geometry";
import type { Rectangle } from "./layout";

export interface ViewState {
  longitude: number;
  latitude: number;
  zoom: number;
  minZoom: number;
  maxZoom: number;
}

/** This share of a map on each side is its edge. */
const EDGE = 0.22;
/** This share of it is left free on each side of an answer. */
const MARGIN = 0.2;
/** Less than this is not worth a new view. Steps of the zoom. */
const NEARER = 0.25;
/** Pixels of one step of an arrow key. */
const STEP = 80;

export class Camera {
  view: ViewState = { longitude: 0, latitude: 0, zoom: 1, minZoom: 0, maxZoom: 17 };
  bounds: Bounds | null = null;
  private heart: Bounds | null = null;
  private moved = false;

  /** `room` is the map that must hold what is asked for; `changed` is told of every new view. */
  constructor(
    private readonly room: () => Rectangle | undefined,
    private readonly changed: (view: ViewState) => void,
  ) {}

  /** Sets how far the view can go out, and where it starts unless the reader has moved it. */
  hold(bounds: Bounds | null, heart: Bounds | null): void {
    this.bounds = bounds;
    this.heart = heart;
  }

  /** The next maps start where most trips are, wherever the reader was. */
  startAnew(): void {
    this.moved = false;
  }

  /** From now on the view is the reader's: new zones do not move it. */
  stay(): void {
    this.moved = true;
  }

  /** Goes where most trips are, unless the view is the reader's. */
  settle(): void {
    if (!this.moved) this.fit(this.heart ?? this.bounds);
  }

  /** Shows everything, or the given part of it. */
  fit(part: Bounds | null = this.bounds): void {
    const room = this.room();
    if (!room || !this.bounds || !part) return;
    const viewport = new WebMercatorViewport({ width: room.width, height: room.height });
    const padding = Math.min(36, room.width / 8, room.height / 8);
    const [whole, shown] = [this.bounds, part].map((bounds) => viewport.fitBounds(bounds, { padding, maxZoom: 15 }));
    const { longitude, latitude, zoom } = shown!;
    this.set({ longitude, latitude, zoom, minZoom: Math.max(0, whole!.zoom - 1.5), maxZoom: 17 });
  }

  /** Moves a place that was found by its name, or lies at the edge, into the middle. */
  reveal(place: Point): void {
    const room = this.room();
    if (!room) return;
    const [x, y] = new WebMercatorViewport({ ...this.view, ...room }).project(place) as Point;
    const inside = (at: number, size: number): boolean => at > size * EDGE && at < size * (1 - EDGE);
    if (!inside(x, room.width) || !inside(y, room.height)) this.move({ ...this.view, longitude: place[0], latitude: place[1] });
  }

  /** Goes nearer where the given part of the world would otherwise be small. */
  approach(part: Bounds | null): void {
    const room = this.room();
    if (!room || !part) return;
    const padding = Math.min(room.width, room.height) * MARGIN;
    const { longitude, latitude, zoom } = new WebMercatorViewport({ width: room.width, height: room.height }).fitBounds(part, { padding, maxZoom: 15 });
    if (zoom > this.view.zoom + NEARER) this.move({ ...this.view, longitude, latitude, zoom });
  }

  zoomBy(steps: number): void {
    this.move({ ...this.view, zoom: this.view.zoom + steps });
  }

  /** One step of an arrow key to the east and to the north. */
  step([x, y]: Point): void {
    const degrees = (STEP / (512 * 2 ** this.view.zoom)) * 360;
    const north = Math.cos((this.view.latitude * Math.PI) / 180);
    this.move({ ...this.view, longitude: this.view.longitude + x * degrees, latitude: this.view.latitude + y * degrees * north });
  }

  /** Goes where the reader wants, as far as there is something to see. */
  move(next: ViewState): void {
    this.moved = true;
    const { minZoom, maxZoom } = this.view;
    const zoom = Math.min(maxZoom, Math.max(minZoom, next.zoom));
    let { longitude, latitude } = next;
    if (this.bounds) {
      const [[west, south], [east, north]] = this.bounds;
      longitude = Math.min(east, Math.max(west, longitude));
      latitude = Math.min(north, Math.max(south, latitude));
    }
    this.set({ longitude, latitude, zoom, minZoom, maxZoom });
  }

  private set(view: ViewState): void {
    this.view = view;
    this.changed(view);
  }
}
