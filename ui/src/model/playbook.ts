/** Who needs whose output in a playbook: from its graph, and from what its agents say themselves. */
import { depths, type Edge } from './graph';
import type { TaskRow } from './run';

export interface PlaybookDocument {
  readonly agents?: readonly string[];
  readonly graph?: string;
}

export interface GraphDocument {
  readonly edges?: readonly Edge[];
}

export interface AgentDocument {
  readonly name: string;
  readonly kind: string;
  readonly dependencyParents?: readonly string[];
}

export function agentRows(
  playbook: PlaybookDocument,
  graph: GraphDocument | null,
  agents: readonly AgentDocument[],
): TaskRow[] {
  const names = namesIn(playbook);
  const known = new Map(agents.map((agent) => [agent.name, agent]));
  return names.map((taskId, position) => {
    const parents = [
      ...(known.get(taskId)?.dependencyParents ?? []),
      ...edgesIn(graph)
        .filter((edge) => edge.to === taskId)
        .map((edge) => edge.from),
    ];
    return {
      taskId,
      name: known.get(taskId)?.kind ?? 'unknown',
      state: known.get(taskId)?.kind ?? 'unknown',
      attempt: 0,
      position,
      optional: false,
      dependsOn: [...new Set(parents)].filter((parent) => names.includes(parent)),
      error: null,
      startedAt: null,
      finishedAt: null,
    };
  });
}

/** The agents that a playbook names, each once. It may be half-written, and is then taken as far as it makes sense. */
export function namesIn({ agents }: PlaybookDocument): string[] {
  return Array.isArray(agents) ? [...new Set(agents.filter((name) => typeof name === 'string'))] : [];
}

/** The same of a graph: everybody at an end of an edge. */
export function agentsIn(graph: GraphDocument): string[] {
  return [...new Set(edgesIn(graph).flatMap((edge) => [edge.from, edge.to]))];
}

function edgesIn(graph: GraphDocument | null): readonly Edge[] {
  const edges: readonly Partial<Edge>[] = Array.isArray(graph?.edges) ? graph.edges : [];
  return edges.filter(
    (edge): edge is Edge =>
      typeof edge?.from === 'string' && typeof edge.to === 'string' && edge.from !== edge.to,
  );
}

/** Who runs at the same time, in order; null if some wait for each other. */
export function levelsOf(rows: readonly TaskRow[]): string[][] | null {
  const depth = depths(rows);
  const levels: string[][] = [];
  for (const { taskId, dependsOn } of rows) {
    if (dependsOn.some((parent) => depth.get(parent)! >= depth.get(taskId)!)) return null;
    (levels[depth.get(taskId)! - 1] ??= []).push(taskId);
  }
  return levels;
}

export interface Told {
  readonly status: string;
  readonly cursor: string;
}

/** Statuses come again when the socket has been away: each counts once. */
export function told<T extends Told>(before: readonly T[], next: T): readonly T[] {
  return before.some((one) => one.cursor === next.cursor) ? before : [...before, next];
}

const ENDS = new Set(['completed', 'failed', 'cancelled', 'timed_out']);

export function isOver(statuses: readonly Told[]): boolean {
  return statuses.some((one) => ENDS.has(one.status));
}
