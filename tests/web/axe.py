"""What axe says of a page: no violation, and where it cannot decide, the contrast is computed here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from web.driver import Opened
from web.once import load

WEB = Path(__file__).resolve().parents[2] / "web"
READABLE = 4.5
"""The least contrast of small text (WCAG 2.2, 1.4.3)."""

RUN = """; axe.run(document, { resultTypes: ["violations", "incomplete"], %s }).then(({ violations, incomplete }) => {
  const told = (found) => found.map(({ id, nodes }) => [id, nodes.map((node) => node.target.at(-1))]);
  return [told(violations), told(incomplete)];
})"""
# The least contrast of a text, whatever lies beneath the map: its own ground and halo, then both black and white.
CONTRAST = """(selector) => {
  const context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 })
    .getContext("2d", { willReadFrequently: true });
  const parse = (colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], ground) => [r, g, b].map((one, i) => one * a + ground[i] * (1 - a));
  const luminance = (colour) => colour.map((one) => one / 255)
    .map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
    .reduce((sum, one, i) => sum + one * [0.2126, 0.7152, 0.0722][i], 0);
  const element = document.querySelector(selector), style = getComputedStyle(element);
  const text = parse(element instanceof SVGElement ? style.fill : style.color);
  const layers = [];
  if (style.textShadow !== "none") layers.push(parse(style.textShadow.match(/^(?:rgb|color|oklab)[^)]*\\)/)[0]));
  for (let at = element; at && layers.at(-1)?.[3] !== 1; at = at.parentElement) {
    if (at.classList.contains("maps")) break;
    layers.push(parse(getComputedStyle(at).backgroundColor));
  }
  return Math.min(...[0, 255].map((one) => {
    const ground = layers.reduceRight((beneath, layer) => over(layer, beneath), [one, one, one]);
    const [low, high] = [ground, over(text, ground)].map(luminance).sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  }));
}"""


def look(page: Page, rule: str | None = None) -> tuple[list[Any], int]:
    """Return what is wrong on a page, by all rules or by one, and how many texts axe could not decide on."""
    build = load(WEB.parent / "scripts" / "build_web.py")
    build.install(build.node_tools()[1])
    axe = (WEB / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    violations, incomplete = page.evaluate(axe + RUN % ("" if rule is None else f'runOnly: ["{rule}"]'))
    wrong: list[Any] = [*violations, *(found for found in incomplete if found[0] != "color-contrast")]
    undecided = [target for name, targets in incomplete if name == "color-contrast" for target in targets]
    contrasts = {target: page.evaluate(CONTRAST, target) for target in undecided}
    return [*wrong, *((target, found) for target, found in contrasts.items() if found < READABLE)], len(undecided)


def check_by_axe(opened: Opened) -> None:
    """Check the map, the matrix and what stands behind the promise, and what is left open there."""
    for button in ("Matrix", "Flows", "How it was made", "Close"):
        opened.press(button)
        wrong, _ = look(opened.page)
        assert wrong == [], (button, wrong)
