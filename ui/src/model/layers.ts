/**
 * A layout for large graphs, in time that grows with them and no faster: tasks stand in the column of their depth, beside those
 * that they depend on. Columns that are too long to be seen go on in the next one.
 */
import { depths, NODE, type Layout, type LayoutRequest } from './graph';

export const MANY = 400;
const LONGEST_COLUMN = 50;
const SWEEPS = 4;
const GAP = { x: 72, y: 14 };
const WRAP_GAP = 16;
/** Very many that stand side by side make a square of this many rows for each column: it can be seen as a whole. */
const SQUARE = (NODE.width + WRAP_GAP) / (NODE.height + GAP.y);

/** Whether this is the better way: the careful one takes too long, or would make one endless column. */
export function isLarge({ ids, edges }: LayoutRequest): boolean {
  return (
    ids.length > MANY || Math.max(0, ...layersOf(ids, edges).map((layer) => layer.length)) > LONGEST_COLUMN
  );
}

export function layered({ ids, edges }: LayoutRequest): Layout {
  const layers = layersOf(ids, edges);
  untangle(layers, edges);
  const places: Record<string, { x: number; y: number }> = {};
  let x = 0;
  for (const layer of layers) {
    const longest = Math.max(LONGEST_COLUMN, Math.sqrt(layer.length * SQUARE));
    const columns = Math.ceil(layer.length / longest);
    const rows = Math.ceil(layer.length / columns);
    layer.forEach((id, index) => {
      const column = Math.floor(index / rows);
      const inColumn = Math.min(rows, layer.length - column * rows);
      places[id] = {
        x: x + column * (NODE.width + WRAP_GAP),
        y: ((index % rows) - (inColumn - 1) / 2) * (NODE.height + GAP.y),
      };
    });
    x += columns * (NODE.width + WRAP_GAP) - WRAP_GAP + GAP.x;
  }
  return { places };
}

function layersOf(ids: LayoutRequest['ids'], edges: LayoutRequest['edges']): string[][] {
  const before = new Map<string, string[]>(ids.map((id) => [id, []]));
  for (const { from, to } of edges) before.get(to)?.push(from);
  const depth = depths(ids.map((taskId) => ({ taskId, dependsOn: before.get(taskId)! })));
  const layers: string[][] = [];
  for (const id of ids) (layers[depth.get(id)! - 1] ??= []).push(id);
  return layers;
}

/** Put each task where its neighbours are, on average, there and back a few times: edges then cross less. */
function untangle(layers: string[][], edges: LayoutRequest['edges']): void {
  const ups = new Map<string, string[]>();
  const downs = new Map<string, string[]>();
  for (const { from, to } of edges) {
    ups.set(to, [...(ups.get(to) ?? []), from]);
    downs.set(from, [...(downs.get(from) ?? []), to]);
  }
  const rank = new Map<string, number>();
  const note = (layer: string[]) => layer.forEach((id, index) => rank.set(id, index / layer.length));
  layers.forEach(note);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const down = sweep % 2 === 0;
    const neighbours = down ? ups : downs;
    for (const layer of down ? layers : layers.toReversed()) {
      const wanted = new Map(layer.map((id) => [id, middle(neighbours.get(id), rank) ?? rank.get(id)!]));
      layer.sort((one, other) => wanted.get(one)! - wanted.get(other)!);
      note(layer);
    }
  }
}

function middle(ids: readonly string[] | undefined, rank: ReadonlyMap<string, number>): number | null {
  if (ids === undefined || ids.length === 0) return null;
  return ids.reduce((sum, id) => sum + rank.get(id)!, 0) / ids.length;
}
