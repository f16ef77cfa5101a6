/** The card on the left: title, From and To, one sentence, how well it is known, and a ranked list. */

import type { Answer, Entry } from "../ask";
import { h, refill, replace, svg, type Child } from "../dom";
import type { Speech } from "../words";
import { PlaceField, type Suggestion } from "./field";

export interface CardActions {
  choose: (end: "from" | "to", place: string | null) => void;
  suggest: (text: string) => Suggestion[];
  open: (entry: Entry) => void;
  /** The pointer or the focus is on a row, or no longer. */
  mark: (entry: Entry | null) => void;
}

export interface CardContent {
  title: string;
  about: string[];
  from: string | null;
  to: string | null;
  sentences: string[];
  /** Shares that are known sharply and fairly well, in words, and the bounds, which are there on request. */
  known: { sharp: number; medium: number; text: string; sure: string; bounds: string | null } | null;
  heading: string;
  list: { entry: Entry; name: string; number: string; share: number; sure: number; sign?: number; faint?: boolean }[];
  more: number;
}

const LISTED = 40;
export const listed = ({ list }: Pick<Answer, "list">): Entry[] => list.slice(0, LISTED);

export class Card {
  readonly element: HTMLElement;
  private readonly title = h("h1", {});
  private readonly about = h("p", { class: "sub" });
  private readonly fields: Record<"from" | "to", PlaceField>;
  private readonly say = h("p", { class: "say", role: "status" });
  private readonly known = h("div", { class: "known" });
  private readonly heading = h("h2", {});
  private readonly list = h("ol", { class: "ranked" });
  private readonly more = h("p", { class: "note" });
  /** The list is short until somebody asks for all of it; the card can shrink to its title. */
  private readonly all = h("button", { type: "button", class: "link all", onclick: () => this.toggle("open") });
  private readonly fold = h("button", { type: "button", class: "fold", onclick: () => this.toggle("folded") }, svg("svg", { viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true" }, svg("path", { d: "M3 10l5-5 5 5" })));
  private words: Speech["words"] | null = null;
  private listed = "";

  constructor(private readonly actions: CardActions, extra: HTMLElement | null) {
    this.fields = {
      from: new PlaceField("from", actions.suggest, (place) => actions.choose("from", place)),
      to: new PlaceField("to", actions.suggest, (place) => actions.choose("to", place)),
    };
    const question = h("div", { class: "question" }, this.fields.from.element, this.fields.to.element);
    this.element = h("section", { class: "card main", "data-card": "main" }, this.fold, this.title, this.about, extra, question, this.say, this.known, this.heading, this.list, this.more, this.all);
  }

  private toggle(name: "open" | "folded"): void {
    this.element.classList.toggle(name);
    // On a phone the sheet grows with its list, and shrinks with its card.
    this.element.parentElement!.classList.toggle(name, this.element.classList.contains(name));
    this.label();
    dispatchEvent(new Event("resize"));
  }

  private label(): void {
    const [open, folded] = (["open", "folded"] as const).map((name) => this.element.classList.contains(name));
    const { fewer, allPlaces, unfold, fold } = this.words!;
    this.all.textContent = open ? fewer : allPlaces(this.listed);
    this.all.setAttribute("aria-expanded", String(open));
    this.fold.setAttribute("aria-label", folded ? unfold : fold);
    this.fold.setAttribute("aria-expanded", String(!folded));
  }

  draw(content: CardContent, speech: Speech): void {
    const { words } = speech;
    this.words = words;
    this.element.setAttribute("aria-label", words.card);
    this.title.textContent = content.title;
    replace(this.about, content.about.join(" · "));
    this.about.hidden = !content.about.length;
    this.fields.from.draw(words.from, content.from, words);
    this.fields.to.draw(words.to, content.to, words);
    const [first, ...others] = content.sentences;
    replace(this.say, h("b", {}, first), ...others.map((one) => h("span", {}, ` ${one}`)));
    this.drawKnown(content.known, speech);
    this.heading.textContent = content.heading;
    refill(this.list, ...content.list.map((row) => h("li", {}, this.row(row))));
    this.more.textContent = content.more > 0 ? words.more(speech.number(content.more)) : "";
    this.more.hidden = content.more <= 0;
    // Without filters below it, and with an answer that is a list, the card has room for more rows.
    this.element.classList.toggle("asked", (content.from ?? content.to) !== null || content.list.some(({ sign }) => sign !== undefined));
    this.listed = speech.number(content.list.length + Math.max(0, content.more));
    this.all.hidden = content.list.length < 2;
    this.label();
  }

  private row({ entry, name, number, share, sure, sign, faint }: CardContent["list"][number]): HTMLElement {
    const whole = h("i", { class: `whole${sign ? (sign > 0 ? " plus" : " minus") : ""}` });
    whole.style.width = `${100 * share}%`;
    const certain = h("i", { class: "certain" });
    certain.style.width = `${100 * share * sure}%`;
    return h("button", { type: "button", "data-key": `list-${entry.place}`, class: faint ? "faint" : null, onclick: () => this.actions.open(entry), onmouseenter: () => this.actions.mark(entry), onmouseleave: () => this.actions.mark(null), onfocus: () => this.actions.mark(entry), onblur: () => this.actions.mark(null) }, whole, sign === undefined && certain, h("span", {}, name), h("em", {}, number));
  }

  private drawKnown(known: CardContent["known"], { words }: Speech): void {
    this.known.hidden = !known;
    if (!known) return;
    const part = (share: number, kind: string): HTMLElement => {
      const own = h("i", { class: kind });
      own.style.width = `${100 * share}%`;
      return own;
    };
    const bar = h("div", { class: "bar", "aria-hidden": "true" }, part(known.sharp, "sharp"), part(known.medium, "medium"));
    const parts: Child[] = [bar, h("small", { title: words.knownNote }, known.text, " ", h("span", { class: "sure" }, known.sure))];
    refill(this.known, ...parts, known.bounds !== null && this.certain(known.bounds, words));
  }

  /** The bounds that hold whatever the truth is: for who asks for certainty. */
  private certain(bounds: string, words: Speech["words"]): HTMLElement {
    if (this.asked) return h("small", { class: "bounds" }, bounds);
    const show = (): void => {
      this.asked = true;
      ask.replaceWith(this.certain(bounds, words));
    };
    const ask = h("button", { type: "button", class: "link", "data-key": "certain", onclick: show }, words.whatIsCertain);
    return ask;
  }

  private asked = false;
}
