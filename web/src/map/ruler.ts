/** Distances on the map. */

const EQUATOR = 40_075_016;
const LONGEST = 110;

const metresPerPixel = (zoom: number, latitude: number): number => (EQUATOR * Math.cos((latitude * Math.PI) / 180)) / (512 * 2 ** zoom);

export const unitsAt = ({ zoom, latitude }: { zoom: number; latitude: number }): { pixelsPerKm: number } => ({ pixelsPerKm: 1000 / metresPerPixel(zoom, latitude) });

/** The length of a round distance. */
export function scaleBar(zoom: number, latitude: number): { pixels: number; text: string } {
  const own = metresPerPixel(zoom, latitude);
  const most = own * LONGEST;
  const power = 10 ** Math.floor(Math.log10(most));
  const metres = [5, 2, 1].map((step) => step * power).find((length) => length <= most) ?? power;
  return {
    pixels: Math.round(metres / own),
    text: metres >= 1000 ? `${metres / 1000} km` : `${metres} m`,
  };
}
