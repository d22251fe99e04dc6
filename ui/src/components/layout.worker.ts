/** Lays out a graph beside the page: hundreds of nodes take a second, and nobody should wait for a click meanwhile. */
import { graphlib, layout } from '@dagrejs/dagre';
import { isLarge, layered } from '../model/layers';
import { NODE, type Layout, type LayoutRequest } from '../model/graph';

self.onmessage = ({ data }: MessageEvent<LayoutRequest>) => {
  self.postMessage(isLarge(data) ? layered(data) : place(data));
};

function place({ ids, edges }: LayoutRequest): Layout {
  const graph = new graphlib.Graph();
  graph.setGraph({ rankdir: 'LR', nodesep: 14, ranksep: 56 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const id of ids) graph.setNode(id, { ...NODE });
  for (const { from, to } of edges) graph.setEdge(from, to);
  layout(graph);
  const places: Record<string, { x: number; y: number }> = {};
  for (const id of ids) {
    const { x, y } = graph.node(id);
    places[id] = { x: x - NODE.width / 2, y: y - NODE.height / 2 };
  }
  return { places };
}
