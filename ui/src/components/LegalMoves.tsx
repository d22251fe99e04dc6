/** Where an item may go from each status: the database refuses everything else. */
import { Group, Paper, Switch, Table, Text, Title } from '@mantine/core';
import { useState } from 'react';
import { useAsk } from '../api/live';
import { ways } from '../model/pipeline';
import { LEGAL_MOVES } from '../services/pipelines';
import { Answer } from './Answer';
import { Copy } from './bits';
import { Tone } from './Tone';
import { Sheet } from './Sheet';

const SAID: Record<string, string> = {
  enter: 'is entered at',
  course: 'goes on to',
  skip: 'may skip to',
  end: 'may end as',
  review: 'by people to',
  named: 'by hand to',
  retry: 'is tried again from',
  failure: 'fails to',
  again: 'begins again at',
};
/** Nearly everything may fail, or begin again. */
const EVERYWHERE = new Set(['failure', 'again']);

export function LegalMoves({
  pipeline,
  version,
  tones,
}: {
  pipeline: string;
  version: number;
  tones: ReadonlyMap<string, string>;
}) {
  const asked = useAsk(LEGAL_MOVES, { name: pipeline }, { tick: version });
  const [everything, setEverything] = useState(false);
  return (
    <Paper component="section" aria-label="Legal moves">
      <Answer of={asked}>
        {({ pipelineMoves: found }) => (
          <>
            <Group justify="space-between" mb="xs">
              <div>
                <Title order={2}>Legal moves</Title>
                <Text fz="xs" c="dimmed">
                  The database refuses all others
                </Text>
              </div>
              <Group gap="md">
                <Switch
                  size="xs"
                  label="Also failures and ways back"
                  checked={everything}
                  onChange={(event) => setEverything(event.currentTarget.checked)}
                />
                <Group gap={4}>
                  <Text fz="sm">Mermaid</Text>
                  <Copy text={found?.mermaid ?? ''} label="Copy the diagram" />
                </Group>
              </Group>
            </Group>
            <Sheet>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th ta="right" w={64}>
                    Code
                  </Table.Th>
                  <Table.Th w={200}>Status</Table.Th>
                  <Table.Th>Where an item goes from there</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {ways(found?.moves ?? []).map((way) => (
                  <Table.Tr key={way.code}>
                    <Table.Td ta="right" c="dimmed">
                      {way.code || ''}
                    </Table.Td>
                    <Table.Td>
                      {way.code === 0 ? way.from : <Tone status={way.from} tone={tones.get(way.from)} />}
                    </Table.Td>
                    <Table.Td>
                      <Group gap="4px 16px">
                        {way.to
                          .filter((one) => everything || !EVERYWHERE.has(one.kind))
                          .map((one) => (
                            <Text key={one.kind} fz="sm">
                              <Text span c="dimmed" fz="xs">
                                {SAID[one.kind] ?? one.kind}{' '}
                              </Text>
                              {one.statuses.join(', ')}
                            </Text>
                          ))}
                      </Group>
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Sheet>
          </>
        )}
      </Answer>
    </Paper>
  );
}
