/** Reading a GeoJSON file that the reader puts beneath the zones. It never leaves the page. */

import type { Point, Polygon } from "./geometry";

interface Json {
  type?: string;
  features?: Json[];
  geometry?: Json | null;
  geometries?: Json[];
  coordinates?: unknown;
}

export interface Beneath {
  polygons: Polygon[];
  lines: Point[][];
}

export function readBeneath(content: unknown): Beneath {
  const found: Beneath = { polygons: [], lines: [] };
  const visit = (part: Json | null | undefined): void => {
    part?.features?.forEach(visit);
    part?.geometries?.forEach(visit);
    visitGeometry(part);
    if (part?.geometry) visit(part.geometry);
  };
  const visitGeometry = (part: Json | null | undefined): void => {
    if (part?.type === "Polygon") found.polygons.push(part.coordinates as Polygon);
    if (part?.type === "MultiPolygon") found.polygons.push(...(part.coordinates as Polygon[]));
    if (part?.type === "LineString") found.lines.push(part.coordinates as Point[]);
    if (part?.type === "MultiLineString") found.lines.push(...(part.coordinates as Point[][]));
  };
  visit(content as Json);
  return found;
}
