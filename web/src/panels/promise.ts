/** What is promised, in one sentence, and behind it how the page was made. */

import { h, Menu, replace } from "../dom";
import { COUNTS, noiseOf, type Model } from "../model";
import type { Speech } from "../words";
import { account, asked } from "./account";
import { footing, promises } from "./heading";
import { histograms } from "./histogram";
import { privacy, utility } from "./quality";
import { headline } from "./statement";

export class Promises {
  private readonly menu = new Menu("card");
  readonly element = h("aside", { class: "promise" }, this.menu.element);
  private readonly dialog = h("dialog", { class: "made", lang: "en" });
  private readonly numbers = h("div", { class: "numbers" });
  private model: Model | null = null;
  private speech: Speech | null = null;

  constructor(private readonly live: boolean) {
    document.body.append(this.dialog);
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close());
  }

  draw(model: Model, speech: Speech): void {
    [this.model, this.speech] = [model, speech];
    const { words } = speech;
    const { rule, published, parameters } = model.releases[0]!.about;
    const noise = noiseOf(parameters);
    const counts = COUNTS.filter((name) => rule[name] != null).map((name) => `${speech.decimal(rule[name]!)} ${words.counted[name]}`);
    const text = noise ? words.promiseNoise(noise.unit, speech.decimal(noise.epsilon)) : published.classes ? words.promise(counts.join(` ${words.and} `)) : words.promiseNothing;
    this.menu.draw(h("b", {}, words.promiseLead), h("p", {}, text), h("button", { type: "button", class: "link", "data-key": "made", onclick: () => this.open() }, words.made));
    if (this.dialog.open) this.fill();
  }

  open(): void {
    this.fill();
    this.dialog.showModal();
  }

  /** Fills in what took longer to find out than the release itself. */
  refresh(): void {
    if (this.dialog.open) this.fill();
  }

  /** Everything about how the page was made; on paper it is the second sheet. */
  fill(): void {
    const { releases } = this.model!;
    const { words } = this.speech!;
    replace(this.numbers, utility(releases), privacy(releases), ...[histograms(releases)].flat(), account(releases), asked(releases));
    this.numbers.classList.toggle("wide", releases.length > 2);
    replace(
      this.dialog,
      h("header", { lang: this.speech!.language }, h("h2", {}, words.made), h("button", { type: "button", onclick: () => this.dialog.close() }, words.close)),
      ...promises(releases),
      releases.length === 1 && headline(releases[0]!),
      this.numbers,
      h("footer", {}, ...footing(this.model!, this.live)),
    );
  }
}
