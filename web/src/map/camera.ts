/** Which part of the world the map shows, and how far it may be moved. */

import { WebMercatorViewport } from "@deck.gl/core";
import type { Bounds, Point } from "../geometry";

export interface ViewState {
  longitude: number;
  latitude: number;
  zoom: number;
  minZoom: number;
  maxZoom: number;
}

/** The map in pixels, and how much of it lies under cards on each side. */
export interface Room {
  width: number;
  height: number;
  padding: { left: number; right: number; top: number; bottom: number };
}

const MAX_ZOOM = 15;
/** Pixels of one step of an arrow key. */
const STEP = 80;

export class Camera {
  view: ViewState = { longitude: 0, latitude: 0, zoom: 1, minZoom: 0, maxZoom: 17 };
  bounds: Bounds | null = null;
  /** The zoom at which most trips are seen. */
  fitted = 0;
  private heart: Bounds | null = null;
  private moved = false;

  constructor(
    private readonly room: () => Room | null,
    private readonly changed: (view: ViewState, byHand: boolean) => void,
  ) {}

  /** Sets how far the view can go out, and where it starts unless the reader has moved it. */
  hold(bounds: Bounds | null, heart: Bounds | null): void {
    this.bounds = bounds;
    this.heart = heart;
  }

  /** Goes where most trips are, unless the view is the reader's. */
  settle(): void {
    if (!this.moved) this.fit();
  }

  get isMoved(): boolean {
    return this.moved;
  }

  /** Shows where most trips are. */
  fit(): void {
    const part = this.heart ?? this.bounds;
    const room = this.room();
    if (!room || !this.bounds || !part) return;
    const [whole, shown] = [this.bounds, part].map((bounds) => this.viewOf(bounds, room));
    this.fitted = shown!.zoom;
    this.set({ ...shown!, minZoom: Math.max(0, Math.min(whole!.zoom, shown!.zoom) - 1), maxZoom: 17 });
  }

  private viewOf(bounds: Bounds, { width, height, padding }: Room): Pick<ViewState, "longitude" | "latitude" | "zoom"> {
    const space = { left: padding.left + 12, right: padding.right + 12, top: padding.top + 12, bottom: padding.bottom + 12 };
    const fits = space.left + space.right < width * 0.9 && space.top + space.bottom < height * 0.9;
    const { longitude, latitude, zoom } = new WebMercatorViewport({ width, height }).fitBounds(bounds, { padding: fits ? space : 8, maxZoom: MAX_ZOOM });
    return { longitude, latitude, zoom };
  }

  /** Brings a part of the map into view where it is not, without going farther out than needed. */
  reveal(part: Bounds | null): void {
    const room = this.room();
    if (!room || !part) return;
    const viewport = new WebMercatorViewport({ ...this.view, width: room.width, height: room.height });
    const [[x0, y1], [x1, y0]] = part.map((corner) => viewport.project(corner) as Point) as [Point, Point];
    const { padding } = room;
    const inView = x0 >= padding.left && x1 <= room.width - padding.right && y0 >= padding.top && y1 <= room.height - padding.bottom;
    if (inView) return;
    const next = this.viewOf(part, room);
    this.move({ ...this.view, ...next, zoom: Math.min(next.zoom, this.view.zoom) });
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
  move(next: Pick<ViewState, "longitude" | "latitude" | "zoom">): void {
    this.moved = true;
    const { minZoom, maxZoom } = this.view;
    const zoom = Math.min(maxZoom, Math.max(minZoom, next.zoom));
    let { longitude, latitude } = next;
    if (this.bounds) {
      const [[west, south], [east, north]] = this.bounds;
      longitude = Math.min(east, Math.max(west, longitude));
      latitude = Math.min(north, Math.max(south, latitude));
    }
    this.set({ longitude, latitude, zoom, minZoom, maxZoom }, true);
  }

  private set(view: ViewState, byHand = false): void {
    this.view = view;
    this.changed(view, byHand);
  }
}
