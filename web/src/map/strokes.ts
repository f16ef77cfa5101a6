/**
 * Straight strokes in one draw call. deck.gl's own lines are instances, and a renderer without a graphics card spends
 * some 35 µs on each instance, however short: with them, tens of thousands of edges took seconds.
 */

import { Layer, project32, type LayerProps, type UpdateParameters } from "@deck.gl/core";
import { Model } from "@luma.gl/engine";
import type { Colour } from "../colour";
import type { Point } from "../geometry";
import { FLAT } from "./flat";

export interface Segment {
  zone: number;
  from: Point;
  to: Point;
  /** How many dashes and gaps were passed at either end, if it is to be dashed. */
  along?: [number, number];
}

/** The steps of a line, of a zone if it belongs to one. */
export const segmentsOf = (line: Point[], zone = 0): Segment[] => line.slice(1).map((to, i) => ({ zone, from: line[i]!, to }));

interface Props {
  data: Segment[];
  colour: Colour;
  getWidth: (segment: Segment) => number;
  dashed: boolean;
}

const BLOCK = `\
layout(std140) uniform strokeUniforms {
  vec4 colour;
  float dashed;
} stroke;
`;
const strokeModule = { name: "stroke", vs: BLOCK, fs: BLOCK, uniformTypes: { colour: "vec4<f32>", dashed: "f32" } } as const;

const VERTEX = `\
#version 300 es
in vec3 positions;
in vec3 positions64Low;
in vec3 others;
in vec3 others64Low;
in vec3 sides;
out float along;
out vec2 across;
void main(void) {
  geometry.worldPosition = positions;
  vec4 here = project_position_to_clipspace(positions, positions64Low, vec3(0.0), geometry.position);
  vec4 there = project_position_to_clipspace(others, others64Low, vec3(0.0));
  vec2 ahead = normalize((there.xy - here.xy) * project.viewportSize);
  // Half a pixel more on either side, over which the stroke fades: smooth without multisampling.
  float half_width = abs(sides.x);
  float reach = sign(sides.x) * (half_width + 0.5);
  gl_Position = here + vec4(project_pixel_size_to_clipspace(vec2(-ahead.y, ahead.x) * reach), 0.0, 0.0);
  along = sides.y;
  across = vec2(reach * sides.z, half_width + 0.5);
}
`;
const FRAGMENT = `\
#version 300 es
precision highp float;
in float along;
in vec2 across;
out vec4 fragColor;
void main(void) {
  if (stroke.dashed > 0.5 && mod(along, 2.0) > 1.0) discard;
  fragColor = vec4(stroke.colour.rgb, stroke.colour.a * min(1.0, across.y - abs(across.x)));
}
`;

/** Corners of the two triangles of a stroke: which end, and on which side as seen from there. */
const CORNERS: readonly [0 | 1, number][] = [[0, 1], [0, -1], [1, -1], [0, -1], [1, 1], [1, -1]];

interface Mesh {
  positions: Float64Array;
  others: Float64Array;
  sides: Float32Array;
}

function meshOf({ data, getWidth }: Props): Mesh {
  const many = data.length * CORNERS.length;
  const mesh = { positions: new Float64Array(3 * many), others: new Float64Array(3 * many), sides: new Float32Array(3 * many) };
  let corner = 0;
  for (const segment of data) {
    const half = getWidth(segment) / 2;
    for (const [end, side] of CORNERS) {
      const [here, there] = end ? [segment.to, segment.from] : [segment.from, segment.to];
      mesh.positions[3 * corner] = here[0];
      mesh.positions[3 * corner + 1] = here[1];
      mesh.others[3 * corner] = there[0];
      mesh.others[3 * corner + 1] = there[1];
      mesh.sides[3 * corner] = side * half;
      mesh.sides[3 * corner + 1] = segment.along?.[end] ?? 0;
      // Seen from the other end, left is right.
      mesh.sides[3 * corner + 2] = end ? -1 : 1;
      corner++;
    }
  }
  return mesh;
}

export class StrokeLayer extends Layer<Props> {
  static override layerName = "StrokeLayer";
  declare state: { model: Model; mesh: Mesh };

  initializeState(): void {
    const take = (name: keyof Mesh) => (attribute: { value: unknown }) => void (attribute.value = this.state.mesh[name]);
    const place = { size: 3, type: "float64", fp64: this.use64bitPositions(), noAlloc: true } as const;
    this.getAttributeManager()!.add({
      positions: { ...place, update: take("positions") },
      others: { ...place, update: take("others") },
      sides: { size: 3, noAlloc: true, update: take("sides") },
    } as never);
    this.state.model = new Model(this.context.device, {
      ...this.getShaders({ vs: VERTEX, fs: FRAGMENT, modules: [project32, strokeModule] }),
      id: this.props.id,
      bufferLayout: this.getAttributeManager()!.getBufferLayouts(),
      topology: "triangle-list",
      isInstanced: false,
    });
  }

  override updateState(params: UpdateParameters<this>): void {
    super.updateState(params);
    const { props, oldProps } = params;
    if (this.state.mesh && props.data === oldProps.data) return;
    this.state.mesh = meshOf(props as unknown as Props);
    this.state.model.setVertexCount(props.data.length * CORNERS.length);
    this.getAttributeManager()!.invalidateAll();
  }

  override draw(): void {
    const { data, colour, dashed } = this.props as unknown as Props & LayerProps;
    if (!data.length) return;
    this.state.model.shaderInputs.setProps({ stroke: { colour: colour.map((one) => one / 255), dashed: Number(dashed) } });
    this.state.model.draw(this.context.renderPass);
  }
}

/** Strokes of one colour, over whatever was drawn before. */
export function strokes(id: string, data: Segment[], getWidth: (segment: Segment) => number, colour: Colour, dashed = false): Layer {
  return new StrokeLayer({ id, data, getWidth, colour, dashed, parameters: FLAT });
}
