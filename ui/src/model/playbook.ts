/** Who needs whose output in a playbook: from its graph, and from what its agents say themselves. */
import type { TaskRow } from './run';

export interface PlaybookDocument {
  readonly agents?: readonly string[];
  readonly graph?: string;
}

export interface GraphDocument {
  readonly edges?: readonly { readonly from: string; readonly to: string }[];
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
  const names = playbook.agents ?? [];
  const known = new Map(agents.map((agent) => [agent.name, agent]));
  return names.map((taskId, position) => {
    const parents = [
      ...(known.get(taskId)?.dependencyParents ?? []),
      ...(graph?.edges ?? []).filter((edge) => edge.to === taskId).map((edge) => edge.from),
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
