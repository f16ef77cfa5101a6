/** Printing the map: what a browser prints of a canvas with a graphics card behind it is its last frame on the screen. */

import { h, replace } from "../dom";

export class Paper {
  readonly element = h("div", { "aria-hidden": "true" });

  constructor(private readonly map: HTMLElement) {}

  /** Keeps the shape of the map while it is printed: names lie where they lie on the screen. */
  follow(): void {
    addEventListener("beforeprint", () => {
      const { clientWidth, clientHeight } = this.map;
      Object.assign(this.map.style, { width: `${clientWidth}px`, height: `${clientHeight}px`, zoom: String(Math.min(1, WIDTH / clientWidth)) });
    });
    addEventListener("afterprint", () => {
      Object.assign(this.map.style, { width: "", height: "", zoom: "" });
      replace(this.element);
    });
  }

  /** A plain copy of the canvas, which is up to date. */
  copy(drawn: HTMLCanvasElement | null): void {
    if (!drawn) return;
    const copy = h("canvas", { class: "paper", width: drawn.width, height: drawn.height });
    copy.getContext("2d")!.drawImage(drawn, 0, 0);
    replace(this.element, copy);
  }
}

/** Pixels that fit on paper side by side. */
const WIDTH = 680;
