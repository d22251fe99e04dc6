/** The same for many jobs: first what it would do to each, then to one after the other, and what came of each. */
import { Button, Group, Modal, Progress, ScrollArea, Stack, Table, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import type { CombinedError } from 'urql';
import { describe } from '../model/errors';
import { hasEnded, label } from '../model/states';
import { counted } from '../model/words';
import { REDRIVE } from '../services/deadLetters';
import { CANCEL, JOB_STATE, RESUME } from '../services/jobs';
import { tell, useAct, useLook } from './actions';

interface Doing {
  readonly act: ReturnType<typeof useAct>;
  readonly look: ReturnType<typeof useLook>;
}

interface Bulk {
  readonly label: string;
  readonly danger?: boolean;
  /** What it would do; an error says why it cannot. */
  readonly preview: (doing: Doing, jobId: string) => Promise<string>;
  readonly run: (doing: Doing, jobId: string) => Promise<string>;
}

const count = (tasks: number) => counted(tasks, 'task');

const ACTIONS: readonly Bulk[] = [
  {
    label: 'Resume',
    preview: async ({ act }, jobId) => {
      const plan = (await act(RESUME, { jobId, dryRun: true })).resume;
      return `${count(plan.rerun.length)} run again, ${plan.reused.length} reused`;
    },
    run: async ({ act }, jobId) => {
      const plan = (await act(RESUME, { jobId, dryRun: false })).resume;
      return `it goes on: ${count(plan.rerun.length)} run again`;
    },
  },
  {
    label: 'Redrive dead letters',
    preview: async ({ act }, jobId) => {
      const found = (await act(REDRIVE, { input: { jobId, dryRun: true } })).redrive.count;
      if (found === 0) throw new Error('it has no dead letters');
      return `${count(found)} run again`;
    },
    run: async ({ act }, jobId) => {
      const done = (await act(REDRIVE, { input: { jobId } })).redrive.count;
      return `${count(done)} run again`;
    },
  },
  {
    label: 'Cancel',
    danger: true,
    preview: async ({ look }, jobId) => {
      const { job } = await look(JOB_STATE, { jobId });
      if (job === null) throw new Error('there is no such job');
      if (hasEnded(job.state)) throw new Error(`it has ended: ${label(job.state)}`);
      return 'it stops, with whatever it runs';
    },
    run: async ({ act }, jobId) => {
      const { cancel } = await act(CANCEL, { jobId, reason: 'cancelled together with others' });
      if (cancel !== 'cancelled') throw new Error(`it had ended before: ${label(cancel)}`);
      return 'it is cancelled';
    },
  },
];

interface Line {
  readonly jobId: string;
  readonly said: string;
  readonly good: boolean;
}

type Stage = 'looking' | 'looked' | 'doing' | 'done';

export function BulkActions({ jobIds, onDone }: { jobIds: readonly string[]; onDone: () => void }) {
  const doing: Doing = { act: useAct(), look: useLook() };
  const [bulk, setBulk] = useState<Bulk | null>(null);
  const [stage, setStage] = useState<Stage>('looking');
  const [lines, setLines] = useState<readonly Line[]>([]);
  const [total, setTotal] = useState(0);
  /** Whoever closes the dialog, or opens another one, ends what goes on in it after the job that it is at. */
  const turn = useRef(0);

  async function oneByOne(
    ids: readonly string[],
    work: (jobId: string) => Promise<string>,
  ): Promise<Line[] | null> {
    turn.current += 1;
    const mine = turn.current;
    const made: Line[] = [];
    setTotal(ids.length);
    setLines([]);
    for (const jobId of ids) {
      made.push(
        await work(jobId).then(
          (said) => ({ jobId, said, good: true }),
          (error: unknown) => ({ jobId, said: reason(error), good: false }),
        ),
      );
      if (turn.current !== mine) return null;
      setLines([...made]);
    }
    return made;
  }

  async function open(chosen: Bulk) {
    setBulk(chosen);
    setStage('looking');
    if (await oneByOne(jobIds, (jobId) => chosen.preview(doing, jobId))) setStage('looked');
  }

  async function go(chosen: Bulk, possible: readonly string[]) {
    setStage('doing');
    const made = await oneByOne(possible, (jobId) => chosen.run(doing, jobId));
    if (made === null) return;
    const good = made.filter((line) => line.good).length;
    if (good === made.length) {
      tell(`${chosen.label}: ${good} of ${made.length} done`);
      close(true);
    } else setStage('done');
  }

  function close(acted: boolean) {
    turn.current += 1;
    setBulk(null);
    if (acted) onDone();
  }

  const good = lines.filter((line) => line.good).map((line) => line.jobId);
  const busy = stage === 'looking' || stage === 'doing';
  const acted = stage === 'doing' || stage === 'done';
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
        onClose={() => close(acted)}
        title={<Text fw={600}>{bulk?.label}</Text>}
        size="lg"
        centered
      >
        {bulk && (
          <Stack>
            {busy && (
              <Text fz="sm" role="status">
                {stage === 'looking' ? 'Looking at' : 'Done with'} {lines.length} of {total}…
                <Progress
                  mt={4}
                  value={(100 * lines.length) / Math.max(1, total)}
                  aria-label="How far it is"
                />
              </Text>
            )}
            {stage === 'done' && (
              <Text fz="sm" fw={600} role="alert">
                {good.length} of {lines.length} done; the others were refused:
              </Text>
            )}
            <Lines lines={lines} heading={acted ? 'What has happened' : 'What would happen'} />
            <Group justify="flex-end">
              <Button variant="default" onClick={() => close(acted)}>
                {stage === 'doing' ? 'Stop here' : stage === 'done' ? 'Close' : 'Back'}
              </Button>
              {stage !== 'done' && (
                <Button
                  color={bulk.danger ? 'red.9' : undefined}
                  disabled={stage === 'looking' || (stage === 'looked' && good.length === 0)}
                  loading={stage === 'doing'}
                  onClick={() => void go(bulk, good)}
                >
                  {bulk.label} {stage === 'doing' ? total : good.length} of {jobIds.length}
                </Button>
              )}
            </Group>
          </Stack>
        )}
      </Modal>
    </Group>
  );
}

function Lines({ lines, heading }: { lines: readonly Line[]; heading: string }) {
  return (
    <ScrollArea.Autosize mah={320} viewportProps={{ tabIndex: 0 }}>
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Job</Table.Th>
            <Table.Th>{heading}</Table.Th>
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
              <Table.Td c={line.good ? undefined : 'dimmed'}>
                {line.good ? line.said : `nothing: ${line.said}`}
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
