/** The explorer: asks the local server whenever a control moves, and shows the newest answer only. */

import { App } from "./app";
import { unpackColumns } from "./columns";
import { h, replace } from "./dom";
import { count } from "./format";
import { unpack, type Goodness, type PackedModel } from "./model";
import { curve, type CurvePoint } from "./panels/curve";
import { liveControls } from "./panels/live";
import { savePanel } from "./panels/save";
import { chosenMethod, GoneError, type LiveSource, type Request } from "./source";

/** After this long without an answer the page says that it is working. */
const PATIENCE = 350;
/** A slider that rests this long is worth looking closer at. */
const REST = 600;

export class Live {
  /** What the page shows now: null before the first answer. */
  shown: { request: Request; at: number } | null = null;
  private app: App | null = null;
  private request: Request;
  private points: CurvePoint[] = [];
  private curveKey = "";
  private curveMethod = "";
  private resting = 0;
  private waiting = 0;
  private readonly slider = h("div", {});
  private readonly panel = h("div", {});
  private readonly chart = h("div", { class: "curve" });
  private readonly problem = h("p", { class: "problem", role: "alert", hidden: true });
  private readonly working = h("p", { class: "working", role: "status", hidden: true });
  private readonly controls: HTMLElement;

  constructor(
    private readonly root: Element,
    private readonly source: LiveSource,
    private readonly announce: (app: App, live: Live) => void,
  ) {
    this.request = source.offer.first;
    const save = savePanel((name) => this.source.save(this.request, name));
    const first = h("section", { class: "card kbar" }, this.slider, this.working, this.problem);
    this.controls = h("aside", { class: "live", lang: "en", "data-card": "live", "aria-label": "Controls" }, first, h("section", { class: "card" }, this.chart, this.panel, save));
  }

  async start(): Promise<void> {
    replace(this.root, h("main", { class: "explore" }, this.controls));
    this.fillPanel();
    await this.ask(this.request);
  }

  private fillPanel(): void {
    const { slider, others } = liveControls(this.source.offer, this.request, (request) => void this.ask(request));
    replace(this.slider, slider);
    replace(this.panel, others);
  }

  private async ask(request: Request): Promise<void> {
    this.request = request;
    clearTimeout(this.resting);
    this.wait(request);
    try {
      const answer = await this.source.ask(request);
      if (answer) this.show(answer, request);
    } catch (error) {
      this.done();
      this.tell(error as Error);
    }
  }

  /** Says what went wrong. What was there stays, marked as belonging to what was asked before. */
  private tell(error: Error): void {
    const last = this.shown?.request;
    const still = last && !(error instanceof GoneError) ? ` The page still shows k = ${count(last.k)} with ${chosenMethod(this.source.offer, last).title}.` : "";
    this.problem.textContent = error.message + still;
    this.problem.hidden = false;
    this.root.setAttribute("data-stale", "");
    if (this.app) this.drawCurve(last ?? this.request);
  }

  private show(answer: PackedModel, request: Request): void {
    this.done();
    this.problem.hidden = true;
    this.root.removeAttribute("data-stale");
    if (this.app) this.app.replaceModel(answer, () => this.drawCurve());
    else {
      this.announce((this.app = new App(this.root, unpack(answer), this.controls)), this);
      this.drawCurve();
    }
    this.shown = { request, at: performance.now() };
    this.resting = window.setTimeout(() => void this.lookCloser(request), REST);
  }

  /** What takes longer than a slider allows: how useful and how near the limit this is, and G for other k. */
  private async lookCloser(request: Request): Promise<void> {
    const found = await this.source.more<{ more: Goodness[]; model: PackedModel }>("more", request);
    if (!found) return;
    // The slider showed rows spread evenly; now come the estimates that the saved page has.
    const model = await unpackColumns(found.model);
    if (this.request !== request) return;
    this.app!.replaceModel(model, () => this.app!.addGoodness(found.more));
    const key = JSON.stringify({ ...request, k: 0, method: "" });
    if (key === this.curveKey) return;
    const drawn = await this.source.more<{ curve: CurvePoint[]; method: string }>("curve", request);
    if (!drawn) return;
    [this.curveKey, this.points] = [key, drawn.curve];
    this.curveMethod = drawn.method;
    this.drawCurve();
  }

  private drawCurve(request: Request = this.request): void {
    const key = JSON.stringify({ ...request, k: 0, method: "" });
    const points = key === this.curveKey ? this.points : [];
    replace(this.chart, curve(points, this.curveTitle(request, points), request, this.app!.model.releases));
  }

  /** Whose line is drawn, where it is not that of the chosen method. */
  private curveTitle(request: Request, points: CurvePoint[]): string | null {
    if (!points.length || this.curveMethod === request.method) return null;
    return this.source.offer.methods.find(({ name }) => name === this.curveMethod)?.title ?? this.curveMethod;
  }

  private wait(request: Request): void {
    clearInterval(this.waiting);
    const since = performance.now();
    const name = chosenMethod(this.source.offer, request).title;
    const tell = (): void => {
      const passed = performance.now() - since;
      if (passed < PATIENCE) return;
      this.root.setAttribute("data-busy", "");
      this.working.hidden = false;
      this.working.firstChild!.textContent = `Working with ${name}: ${Math.floor(passed / 1000)} s. The map is still the one before. `;
    };
    replace(this.working, "", h("button", { type: "button", onclick: () => this.stop() }, "Stop"));
    this.working.prepend(document.createTextNode(""));
    this.waiting = window.setInterval(tell, 100);
  }

  private done(): void {
    clearInterval(this.waiting);
    this.working.hidden = true;
    this.root.removeAttribute("data-busy");
  }

  /** Gives up waiting, and goes back to what is on the map. */
  private stop(): void {
    void this.source.stop();
    this.request = this.shown?.request ?? this.source.offer.first;
    this.fillPanel();
    void this.ask(this.request);
  }
}
