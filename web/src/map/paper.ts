/** Printing the maps: what a browser prints of a canvas with a graphics card behind it is its last frame on the screen. */

import { h, replace } from "../dom";

/** Pixels that fit on paper side by side. */
const WIDTH = 640;

export class Paper {
  readonly element = h("div", { "aria-hidden": "true" });

  /** Scales the maps down while they are printed: paper is narrower than a screen, but nothing is squeezed. */
  constructor(private readonly maps: HTMLElement) {}

  follow(): void {
    addEventListener("beforeprint", () => this.fit(true));
    addEventListener("afterprint", () => {
      this.fit(false);
      replace(this.element);
    });
  }

  private fit(printing: boolean): void {
    const width = this.maps.clientWidth;
    Object.assign(this.maps.style, printing ? { width: `${width}px`, zoom: String(Math.min(1, WIDTH / width)) } : { width: "", zoom: "" });
  }

  /** A plain copy of the canvas, which is up to date. */
  copy(drawn: HTMLCanvasElement | null): void {
    if (!drawn) return;
    const copy = h("canvas", { class: "paper", width: drawn.width, height: drawn.height });
    copy.getContext("2d")!.drawImage(drawn, 0, 0);
    replace(this.element, copy);
  }
}
