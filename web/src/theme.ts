/** Light or dark: as the system says, unless the reader chooses; print is always light. */

import { DARK, LIGHT, type Palette } from "./colour";
import type { State, Store } from "./state";

const system = matchMedia("(prefers-color-scheme: dark)");
let printing = false;

export const isDark = (theme: State["theme"]): boolean => !printing && (theme === "auto" ? system.matches : theme === "dark");

export const palette = (state: Pick<State, "theme">): Palette => (isDark(state.theme) ? DARK : LIGHT);

/** Keeps the document in step and calls back when colours change. */
export function followTheme(store: Store, redraw: (printing: boolean) => void): void {
  const apply = (): void => {
    document.documentElement.dataset.theme = isDark(store.state.theme) ? "dark" : "light";
    redraw(printing);
  };
  system.addEventListener("change", apply);
  for (const [event, value] of [["beforeprint", true], ["afterprint", false]] as const) {
    addEventListener(event, () => {
      printing = value;
      apply();
    });
  }
  store.listen((_, changed) => changed.has("theme") && apply());
  apply();
}
