/** Where a page gets its model from: the file itself, or the local server of `odkanon explore`. */

import { unpackColumns } from "./columns";
import type { MethodWords, PackedModel } from "./model";

/** What a steward can ask of the live explorer; unknown to a report. */
export interface Request {
  k: number;
  targets: string[];
  method: string;
  budget: number;
  suppress: "before" | "after";
  resolution: number | null;
  segment: string;
  /** Participants and population side by side, whatever the targets. */
  split: boolean;
  /** Another method, beside the chosen one; never with `split`. */
  versus: string | null;
  /** What one table is published by; only with a method that takes attributes, and of everyone. */
  by: string[];
}

export interface OfferedMethod extends MethodWords {
  name: string;
  /** Takes longer than a slider allows. */
  slow: boolean;
  /** Which of the controls mean something for it. */
  budget: boolean;
  suppress: boolean;
  attributes: boolean;
}

/** The server's offer: which values its controls may take, and what is asked first. */
export interface Offer {
  token: string;
  k: { min: number; max: number };
  budget: { max: number };
  targets: string[];
  methods: OfferedMethod[];
  resolutions: number[];
  segments: string[];
  attributes: string[];
  first: Request;
}

export const chosenMethod = (offer: Offer, request: Request): OfferedMethod =>
  offer.methods.find((one) => one.name === request.method)!;

export interface DataSource {
  readonly offer: Offer | null;
  load(): Promise<PackedModel>;
}

export class EmbeddedSource implements DataSource {
  constructor(private readonly model: PackedModel) {}

  get offer(): Offer | null {
    return (this.model.live as Offer | null | undefined) ?? null;
  }

  load(): Promise<PackedModel> {
    return unpackColumns(this.model);
  }
}

/** Nobody answers any more: ODkAnon was stopped, or the machine slept. */
export class GoneError extends Error {
  constructor() {
    super("ODkAnon no longer answers: it was stopped, or its terminal was closed. What is on this page stays; to go on, start the explorer again and open its new address.");
  }
}

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/**
 * Asks the local server. Only the answer to the newest question is ever delivered: an older one is aborted, and if
 * it arrives all the same it is dropped.
 */
export class LiveSource implements DataSource {
  private newest = 0;
  private running: AbortController | null = null;
  private readonly page = Math.random().toString(36).slice(2);
  private hasBase = false;

  constructor(
    readonly offer: Offer,
    private readonly fetch: Fetch = (url, init) => globalThis.fetch(url, init),
  ) {}

  async load(): Promise<PackedModel> {
    const model = await this.ask(this.offer.first);
    if (!model) throw new Error("another question was asked before the first was answered");
    return model;
  }

  /** The release for these parameters, or null if a newer question was asked meanwhile. */
  async ask(request: Request): Promise<PackedModel | null> {
    const number = ++this.newest;
    this.running?.abort();
    const running = (this.running = new AbortController());
    try {
      const asked = { ...request, base: !this.hasBase };
      const answer = await unpackColumns(await this.post<PackedModel>("anonymize", asked, running.signal));
      if (number !== this.newest) return null;
      this.hasBase = true;
      return answer;
    } catch (error) {
      if (number !== this.newest) return null;
      throw error;
    }
  }

  /** Something more about the release that is shown; null if it is no longer, or if it cannot be had. */
  async more<T>(what: "more" | "curve", request: Request): Promise<T | null> {
    const number = this.newest;
    try {
      const answer = await this.post<T>(what, { ...request }, this.running?.signal);
      return number === this.newest ? answer : null;
    } catch {
      return null;
    }
  }

  save(request: Request, name: string): Promise<{ saved: string[] }> {
    return this.post("save", { ...request, name });
  }

  stop(): Promise<unknown> {
    return this.post("stop", {});
  }

  private async post<T>(what: string, content: object, signal?: AbortSignal): Promise<T> {
    const response = await this.fetch(what, {
      method: "POST",
      headers: { "content-type": "application/json", "x-odkanon-token": this.offer.token },
      body: JSON.stringify({ ...content, page: this.page, number: this.newest }),
      signal: signal ?? null,
    }).catch((error: unknown) => {
      // A browser says no more than "Failed to fetch" of a server that is gone.
      throw error instanceof TypeError ? new GoneError() : error;
    });
    const answer = (await response.json()) as T & { error?: string };
    if (!response.ok) throw new Error(answer.error ?? `the server answered ${response.status}`);
    return answer;
  }
}
