/** The length of a round distance on the map. */

const EQUATOR = 40_075_016;
const LONGEST = 110;

export function scaleBar(zoom: number, latitude: number): { pixels: number; text: string } {
  const metresPerPixel = (EQUATOR * Math.cos((latitude * Math.PI) / 180)) / (512 * 2 ** zoom);
  const most = metresPerPixel * LONGEST;
  const power = 10 ** Math.floor(Math.log10(most));
  const metres = [5, 2, 1].map((step) => step * power).find((length) => length <= most) ?? power;
  return {
    pixels: Math.round(metres / metresPerPixel),
    text: metres >= 1000 ? `${metres / 1000} km` : `${metres} m`,
  };
}
