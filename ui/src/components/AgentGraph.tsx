/** Who needs whose output in a playbook or a graph: as it is kept, or as it is being written. */
import { Group, Stack, Text } from '@mantine/core';
import { lazy, Suspense, useEffect, useMemo, useState } from 'react';
import { useClient, type Client, type CombinedError } from 'urql';
import {
  agentRows,
  agentsIn,
  levelsOf,
  namesIn,
  type AgentDocument,
  type GraphDocument,
  type PlaybookDocument,
} from '../model/playbook';
import { shapeOf } from '../model/graph';
import { Run, type TaskRow } from '../model/run';
import { KINDS, type Kind } from '../services/definitions';
import { Loading, Nothing, Trouble } from './Answer';

const JobGraph = lazy(() => import('./JobGraph'));

/** Of the definitions that have a graph. */
export function hasGraph(kind: Kind): kind is 'playbook' | 'graph' {
  return kind === 'playbook' || kind === 'graph';
}

export function AgentGraph({
  kind,
  definition,
  label,
  height = 300,
  withLevels = false,
  onChoose,
}: {
  kind: 'playbook' | 'graph';
  /** Whatever somebody has written so far. */
  definition: unknown;
  label: string;
  height?: number;
  withLevels?: boolean;
  onChoose?: (agent: string) => void;
}) {
  const rows = useRows(kind, definition);
  const run = useMemo(() => (Array.isArray(rows) ? new Run(rows) : null), [rows]);
  if (rows === null) return <Loading />;
  if (rows instanceof Error) return <Trouble error={rows as CombinedError} />;
  if (rows.length === 0 || run === null) return <Nothing title="It names no agents" />;
  return (
    <Stack gap="xs">
      <div style={{ height }}>
        <Suspense fallback={<Loading />}>
          <JobGraph
            key={shapeOf(rows)}
            run={run}
            tasks={rows}
            label={label}
            chosen={undefined}
            onChoose={(agent) => agent !== undefined && onChoose?.(agent)}
          />
        </Suspense>
      </div>
      {withLevels && <Levels rows={rows} />}
    </Stack>
  );
}

function Levels({ rows }: { rows: readonly TaskRow[] }) {
  const levels = levelsOf(rows);
  if (levels === null) {
    return (
      <Text fz="sm" className="bad" role="alert">
        Some agents wait for each other, and would never begin.
      </Text>
    );
  }
  return (
    <Stack gap={2}>
      {levels.map((level, index) => (
        <Group key={level.join()} gap="xs">
          <Text fz="xs" c="dimmed" w={52}>
            Level {index + 1}
          </Text>
          <Text fz="xs">{level.join(', ')}</Text>
        </Group>
      ))}
    </Stack>
  );
}

/** The agents with who needs whom, from all the definitions that this one speaks of. */
function useRows(kind: 'playbook' | 'graph', definition: unknown): readonly TaskRow[] | Error | null {
  const client = useClient();
  const wanted = JSON.stringify(definition ?? null);
  const [rows, setRows] = useState<readonly TaskRow[] | Error | null>(null);
  useEffect(() => {
    let left = false;
    readRows(client, kind, JSON.parse(wanted)).then(
      (found) => !left && setRows(found),
      (error: Error) => !left && setRows(error),
    );
    return () => {
      left = true;
    };
  }, [client, kind, wanted]);
  return rows;
}

async function readRows(client: Client, kind: 'playbook' | 'graph', definition: unknown): Promise<TaskRow[]> {
  const one = async (of: 'graph' | 'agent', name: string) => {
    const answer = await client.query(KINDS[of].one, { name }).toPromise();
    if (answer.error) throw answer.error;
    return answer.data?.found?.definition;
  };
  const playbook: PlaybookDocument =
    kind === 'playbook'
      ? (definition as PlaybookDocument)
      : { agents: agentsIn(definition as GraphDocument) };
  const graph =
    kind === 'graph'
      ? (definition as GraphDocument)
      : playbook.graph
        ? ((await one('graph', playbook.graph)) as GraphDocument | undefined)
        : undefined;
  const agents = await Promise.all(namesIn(playbook).map((agent) => one('agent', agent)));
  return agentRows(playbook, graph ?? null, agents.filter((agent) => agent !== undefined) as AgentDocument[]);
}
