/** Starts the page: reads the model out of the file, or asks the local server for it. */

import { App } from "./app";
import { h, replace } from "./dom";
import { unpack, type PackedModel } from "./model";
import { liveControls } from "./panels/live";
import { EmbeddedSource, LiveSource, type Request } from "./source";

async function start(root: Element): Promise<void> {
  const embedded = JSON.parse(document.getElementById("model")!.textContent!) as PackedModel;
  const file = new EmbeddedSource(embedded);
  if (!file.offer) {
    expose(new App(root, unpack(await file.load())));
    return;
  }
  const live = new LiveSource(file.offer);
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const ask = async (request: Request): Promise<void> => {
    try {
      const answer = await live.ask(request);
      if (answer) app.replaceModel(answer);
      problem.hidden = true;
    } catch (error) {
      problem.textContent = (error as Error).message;
      problem.hidden = false;
    }
  };
  const controls = h("div", {}, liveControls(file.offer, (request) => void ask(request)), problem);
  const app = new App(root, unpack(await live.load()), controls);
  expose(app);
}

/** A handle for tests and for the curious; it can read what the page shows, nothing else. */
function expose(app: App): void {
  Object.assign(globalThis, {
    odkanon: {
      state: () => app.store.state,
      /** Page pixels of the centre of a zone in a panel such as "r0-origin". */
      place: (panel: string, id: string) => {
        const [release, axis] = panel.slice(1).split("-") as [string, "origin" | "destination"];
        const zones = app.model.releases[Number(release)]![axis];
        const centre = zones.centre[zones.number.get(id)!];
        return centre ? app.maps.project(panel, centre) : null;
      },
    },
  });
}

const root = document.getElementById("app")!;
start(root).catch((error: Error) => {
  console.error(error);
  replace(root, h("p", { class: "problem" }, `This page cannot show its data: ${error.message}`));
});
