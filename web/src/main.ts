/** Starts the page: reads the model out of the file, or asks the local server for it. */

import { App } from "./app";
import { h, replace } from "./dom";
import { Live } from "./live";
import { unpack, type PackedModel } from "./model";
import { EmbeddedSource, LiveSource } from "./source";

async function start(root: Element): Promise<void> {
  const embedded = JSON.parse(document.getElementById("model")!.textContent!) as PackedModel;
  const file = new EmbeddedSource(embedded);
  if (file.offer) {
    await new Live(root, new LiveSource(file.offer), expose).start();
    return;
  }
  expose(new App(root, unpack(await file.load()), null, new URLSearchParams(location.search).has("embed")));
}

/** A handle for tests and for the curious; it can read what the page shows, nothing else. */
function expose(app: App, live: Live | null = null): void {
  Object.assign(globalThis, {
    odkanon: {
      /** In the explorer: the parameters of the release that is on the page, when it got there, and whether with all numbers. */
      shown: () => live?.shown && { ...live.shown, whole: !app.behind },
      state: () => app.store.state,
      level: () => ({ name: app.shownLevel.name, places: app.shownLevel.id }),
      /** The flows on the map. */
      lines: () => app.shownCity?.lines.map(({ ends, size }) => ({ ends, size })),
      view: () => app.maps.camera.view,
      /** Page pixels of a longitude and latitude. */
      spot: (at: [number, number]) => app.maps.project(at),
      /** Page pixels of the middle of a place. */
      place: (id: string) => app.spot(id),
    },
  });
}

const root = document.getElementById("app")!;
start(root).catch((error: Error) => {
  console.error(error);
  replace(root, h("p", { class: "problem" }, `This page cannot show its data: ${error.message}`));
});
