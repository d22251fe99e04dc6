/** This run beside another one: only what differs, unless all is wanted. */
import { Button, Group, Select, Switch, Table, Text } from '@mantine/core';
import { Fragment, useEffect, useState } from 'react';
import { useClient, type CombinedError } from 'urql';
import { useAsk } from '../api/live';
import { compareRuns, differs, type TaskDifference } from '../model/diff';
import { show } from '../model/payload';
import { stamp, type TaskRow } from '../model/run';
import { label } from '../model/states';
import { absolute, duration } from '../model/time';
import { counted } from '../model/words';
import { PAYLOADS, SAME_NAME, type Job } from '../services/jobs';
import { readTasks } from '../services/run';
import { Answer, Loading, Nothing, Trouble } from './Answer';
import { State, useNow } from './bits';
import { Sheet } from './Sheet';
import { TextDiff } from './TextDiff';

const SHOWN = 500;

export function Compare({
  job,
  tasks,
  other,
  onOther,
}: {
  job: Job;
  tasks: readonly TaskRow[];
  other: string | undefined;
  onOther: (jobId: string | undefined) => void;
}) {
  const runs = useAsk(SAME_NAME, { name: job.name });
  const others = (runs.data?.jobs.nodes ?? []).filter((one) => one.jobId !== job.jobId);
  const found = useOther(other);
  const [everything, setEverything] = useState(false);
  const now = useNow();
  const known = others.some((one) => one.jobId === other) || other === undefined;
  return (
    <div className="scrolls" style={{ padding: 12 }}>
      <Group align="flex-end" mb="sm">
        <Select
          label="Compare with another run"
          placeholder={others.length ? 'Choose a run' : 'There is no other run of this name'}
          w={420}
          searchable
          clearable
          data={[
            ...others.map((one) => ({
              value: one.jobId,
              label: `${absolute(Date.parse(one.createdAt))} · ${label(one.state)} · ${one.jobId}`,
            })),
            ...(known ? [] : [{ value: other!, label: other! }]),
          ]}
          value={other ?? null}
          onChange={(jobId) => onOther(jobId ?? undefined)}
        />
        <Switch
          label="Also what is the same"
          checked={everything}
          onChange={(event) => setEverything(event.currentTarget.checked)}
        />
      </Group>
      {other === undefined ? (
        <Nothing title="Choose another run">
          Tasks that differ in state, attempts or time are listed, each with what went in and came out.
        </Nothing>
      ) : found.error ? (
        <Trouble error={found.error} />
      ) : found.tasks === undefined ? (
        <Loading />
      ) : found.tasks === null ? (
        <Nothing title="There is no such job" />
      ) : (
        <>
          {(found.cut || job.totalTasks > tasks.length) && (
            <Text fz="sm" c="dimmed" role="note" mb="xs">
              Only the first tasks of such large jobs are compared.
            </Text>
          )}
          <Differences
            all={compareRuns(tasks, found.tasks, now)}
            everything={everything}
            jobIds={[job.jobId, other]}
          />
        </>
      )}
    </div>
  );
}

interface Other {
  readonly jobId?: string;
  /** Null if there is no such job. */
  readonly tasks?: readonly TaskRow[] | null;
  /** It has more than are read here. */
  readonly cut?: boolean;
  readonly error?: CombinedError;
}

function useOther(jobId: string | undefined): Other {
  const client = useClient();
  const [found, setFound] = useState<Other>({});
  useEffect(() => {
    let left = false;
    if (jobId === undefined) return undefined;
    readTasks(client, jobId)
      .then((read) => !left && setFound({ jobId, tasks: read?.tasks ?? null, cut: Boolean(read?.cursor) }))
      .catch((error: CombinedError) => !left && setFound({ jobId, error }));
    return () => {
      left = true;
    };
  }, [client, jobId]);
  return found.jobId === jobId ? found : {};
}

function Differences({
  all,
  everything,
  jobIds,
}: {
  all: readonly TaskDifference[];
  everything: boolean;
  /** This run and the other. */
  jobIds: readonly [string, string];
}) {
  const [opened, setOpened] = useState<string | null>(null);
  const found = all.filter(differs);
  const shown = everything || found.length === 0 ? all : found;
  return (
    <>
      <Text fz="sm" mb="xs">
        {found.length === 0
          ? 'The runs went the same way: no task differs in state, attempts or time. What went in and came out is behind “Data”.'
          : `${found.length} of ${counted(all.length, 'task')} ${found.length === 1 ? 'differs' : 'differ'}`}
      </Text>
      <Sheet>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Task</Table.Th>
            <Table.Th>This run</Table.Th>
            <Table.Th>The other</Table.Th>
            <Table.Th>Attempts</Table.Th>
            <Table.Th>Time</Table.Th>
            <Table.Th />
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {shown.slice(0, SHOWN).map((one) => (
            <Fragment key={one.taskId}>
              <Table.Tr>
                <Table.Td fw={600}>{one.taskId}</Table.Td>
                <Table.Td>{one.here ? <State state={one.here.state} /> : 'not there'}</Table.Td>
                <Table.Td>{one.there ? <State state={one.there.state} /> : 'not there'}</Table.Td>
                <Table.Td fw={one.changes.includes('attempt') ? 600 : undefined}>
                  {one.here?.attempt ?? '–'} / {one.there?.attempt ?? '–'}
                </Table.Td>
                <Table.Td fw={one.changes.includes('time') ? 600 : undefined}>
                  {said(one.hereMs)} / {said(one.thereMs)}
                </Table.Td>
                <Table.Td ta="right">
                  {one.here && one.there && (
                    <Button
                      variant="subtle"
                      size="compact-xs"
                      aria-expanded={opened === one.taskId}
                      aria-label={`Data of ${one.taskId}`}
                      onClick={() => setOpened(opened === one.taskId ? null : one.taskId)}
                    >
                      {opened === one.taskId ? 'Less' : 'Data'}
                    </Button>
                  )}
                </Table.Td>
              </Table.Tr>
              {opened === one.taskId && (
                <Table.Tr>
                  <Table.Td colSpan={6}>
                    <Data one={one} jobIds={jobIds} />
                  </Table.Td>
                </Table.Tr>
              )}
            </Fragment>
          ))}
        </Table.Tbody>
      </Sheet>
    </>
  );
}

/** What went in and came out, from the other run to this one. */
function Data({ one, jobIds: [jobId, other] }: { one: TaskDifference; jobIds: readonly [string, string] }) {
  const { taskId } = one;
  const here = useAsk(PAYLOADS, { jobId, taskId }, { tick: one.here ? stamp(one.here) : 0, still: true });
  const there = useAsk(PAYLOADS, { jobId: other, taskId }, { still: true });
  return (
    <Answer of={here} lines={2}>
      {(now) => (
        <Answer of={there} lines={2}>
          {(before) => (
            <TextDiff
              label={`Data of ${taskId}, from the other run to this one`}
              before={pretty(before.task?.detail, one.there?.error)}
              now={pretty(now.task?.detail, one.here?.error)}
            />
          )}
        </Answer>
      )}
    </Answer>
  );
}

/** As text that is short enough to be compared line by line. */
function pretty(detail: { input: unknown; output: unknown } | undefined, error: unknown): string {
  const { head, text } = show({ input: detail?.input, output: detail?.output, ...(error ? { error } : {}) });
  return head === null ? text : `${head}\n…`;
}

function said(ms: number | null): string {
  return ms === null ? '–' : duration(ms);
}
