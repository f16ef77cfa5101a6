/** "Save this release": a name, a button, and what became of it. */

import { h } from "../dom";

export function savePanel(save: (name: string) => Promise<{ saved: string[] }>): HTMLElement {
  const name = h("input", { type: "text", required: true, maxlength: 64, size: 18, placeholder: "name of the folder", "aria-label": "Name of the folder" });
  const said = h("span", { role: "status" });
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    said.className = "";
    said.textContent = "Saving…";
    try {
      const { saved } = await save(name.value);
      said.className = "good";
      said.textContent = `Saved as ${saved.join(" and ")}, in the folder where the explorer was started.`;
    } catch (error) {
      said.className = "warn";
      said.textContent = (error as Error).message;
    }
  };
  const form = h("form", { class: "save", onsubmit: (event: Event) => void submit(event) }, name, h("button", {}, "Save this release"), said);
  return form;
}
