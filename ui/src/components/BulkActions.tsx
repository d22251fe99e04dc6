/** The same for many jobs: first what it would do to each, then one after the other. */
import { Button, Group, Modal, Progress, ScrollArea, Stack, Table, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { CombinedError } from 'urql';
import { describe } from '../model/errors';
import { REDRIVE } from '../services/deadLetters';
import { CANCEL, RESUME } from '../services/jobs';
import { tell, useAct } from './actions';
import { Loading } from './Answer';

type Act = ReturnType<typeof useAct>;

interface Bulk {
  readonly label: string;
  readonly danger?: boolean;
  readonly preview: (act: Act, jobId: string) => Promise<string>;
  readonly run: (act: Act, jobId: string) => Promise<unknown>;
}

const count = (tasks: number) => `${tasks} ${tasks === 1 ? 'task' : 'tasks'}`;

const ACTIONS: readonly Bulk[] = [
  {
    label: 'Resume',
    preview: async (act, jobId) => {
      const plan = (await act(RESUME, { jobId, dryRun: true })).resume;
      return `${count(plan.rerun.length)} run again, ${plan.reused.length} reused`;
    },
    run: (act, jobId) => act(RESUME, { jobId, dryRun: false }),
  },
  {
    label: 'Redrive dead letters',
    preview: async (act, jobId) => {
      const found = (await act(REDRIVE, { input: { jobId, dryRun: true } })).redrive.count;
      if (found === 0) throw new Error('it has no dead letters');
      return `${count(found)} run again`;
    },
    run: (act, jobId) => act(REDRIVE, { input: { jobId } }),
  },
  {
    label: 'Cancel',
    danger: true,
    preview: async () => 'stops, if it is still running',
    run: (act, jobId) => act(CANCEL, { jobId, reason: 'cancelled together with others' }),
  },
];

interface Line {
  readonly jobId: string;
  readonly said: string;
  readonly possible: boolean;
}

export function BulkActions({ jobIds, onDone }: { jobIds: readonly string[]; onDone: () => void }) {
  const act = useAct();
  const [bulk, setBulk] = useState<Bulk | null>(null);
  const [lines, setLines] = useState<readonly Line[] | null>(null);
  const [done, setDone] = useState<number | null>(null);

  async function open(chosen: Bulk) {
    setBulk(chosen);
    setLines(null);
    setLines(
      await oneByOne(jobIds, async (jobId) => {
        try {
          return { jobId, said: await chosen.preview(act, jobId), possible: true };
        } catch (error) {
          return { jobId, said: reason(error), possible: false };
        }
      }),
    );
  }

  async function go(chosen: Bulk, possible: readonly Line[]) {
    let failed = 0;
    setDone(0);
    await oneByOne(possible, async ({ jobId }) => {
      await chosen.run(act, jobId).catch(() => (failed += 1));
      setDone((before) => (before ?? 0) + 1);
    });
    setDone(null);
    setBulk(null);
    tell(`${chosen.label}: ${possible.length - failed} of ${possible.length} done`);
    onDone();
  }

  const possible = lines?.filter((line) => line.possible) ?? [];
  return (
    <Group gap="xs">
      <Text fz="sm" fw={600}>
        {jobIds.length} chosen
      </Text>
      {ACTIONS.map((one) => (
        <Button key={one.label} variant="default" onClick={() => void open(one)}>
          {one.label}…
        </Button>
      ))}
      <Modal
        opened={bulk !== null}
        onClose={() => setBulk(null)}
        title={<Text fw={600}>{bulk?.label}</Text>}
        size="lg"
        centered
      >
        {bulk && (
          <Stack>
            {lines === null ? <Loading /> : <Preview lines={lines} />}
            {done !== null && (
              <Progress value={(100 * done) / Math.max(1, possible.length)} aria-label="How far it is" />
            )}
            <Group justify="flex-end">
              <Button variant="default" onClick={() => setBulk(null)}>
                Back
              </Button>
              <Button
                color={bulk.danger ? 'red.9' : undefined}
                disabled={possible.length === 0}
                loading={done !== null}
                onClick={() => void go(bulk, possible)}
              >
                {bulk.label} {possible.length} of {jobIds.length}
              </Button>
            </Group>
          </Stack>
        )}
      </Modal>
    </Group>
  );
}

function Preview({ lines }: { lines: readonly Line[] }) {
  return (
    <ScrollArea.Autosize mah={320} viewportProps={{ tabIndex: 0 }}>
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Job</Table.Th>
            <Table.Th>What would happen</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {lines.map((line) => (
            <Table.Tr key={line.jobId}>
              <Table.Td className="mono">
                <Link className="link" to="/jobs/$jobId" params={{ jobId: line.jobId }}>
                  {line.jobId}
                </Link>
              </Table.Td>
              <Table.Td c={line.possible ? undefined : 'dimmed'}>
                {line.possible ? line.said : `nothing: ${line.said}`}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </ScrollArea.Autosize>
  );
}

function reason(error: unknown): string {
  return 'graphQLErrors' in (error as object)
    ? describe(error as CombinedError).message
    : (error as Error).message;
}

async function oneByOne<From, To>(items: readonly From[], work: (item: From) => Promise<To>): Promise<To[]> {
  const made: To[] = [];
  for (const item of items) made.push(await work(item));
  return made;
}
