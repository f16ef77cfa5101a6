/** How a flat map is drawn: what comes later lies on top, so that no depth is kept. */

export const FLAT = { depthCompare: "always", depthWriteEnabled: false } as const;

/** The same for fills that let nothing through: mixing colours costs a renderer without a graphics card most of its time. */
export const OPAQUE = { ...FLAT, blend: false } as const;

const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;

/** Whether a browser can draw the map at all, and whether it has a graphics card for it. */
export function lookAtWebGL(): "none" | "software" | "card" {
  try {
    const context = document.createElement("canvas").getContext("webgl2");
    if (!context) return "none";
    const named = context.getExtension("WEBGL_debug_renderer_info");
    const renderer = String(context.getParameter(named ? named.UNMASKED_RENDERER_WEBGL : context.RENDERER));
    return SOFTWARE.test(renderer) ? "software" : "card";
  } catch {
    return "none";
  }
}
