import { Badge, Grid, Group, Paper, SimpleGrid, Stack, Table, Text, Title } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { JOB_EVENTS, useAsk, useTick } from '../api/live';
import { CopyAs } from '../components/actions';
import { Answer, Loading, Nothing } from '../components/Answer';
import { Elapsed, Moment, Page, useNow } from '../components/bits';
import { PipelineTable } from '../components/PipelineTable';
import { Tile } from '../components/Tile';
import { buckets, culprit, failureRate, percent, rateOf, totals, worstFirst } from '../model/dashboard';
import { errorLine } from '../model/payload';
import { label, stateOf, STATUSES } from '../model/states';
import { duration } from '../model/time';
import { counted } from '../model/words';
import {
  FAILURES,
  OVERVIEW,
  LONGEST,
  TRENDS,
  type Failure,
  type Overview,
  type Running,
  type Trends,
} from '../services/dashboard';
import { ALL_ITEM_EVENTS, PIPELINES } from '../services/pipelines';
import { Sheet } from '../components/Sheet';

const HourChart = lazy(() => import('../components/HourChart'));
const WATCHED = { types: [...JOB_EVENTS, 'Task Failed', 'Task Waiting', 'Task Retry Scheduled'] };
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const SHOWN = 8;
/** Functions and queues of the engine itself, of gates and playbooks. */
const OWN = 'ostinato.';

export function Dashboard() {
  const tick = useTick(WATCHED, 2000);
  const minute = Math.floor(useNow() / MINUTE) * MINUTE;
  const overview = useAsk(OVERVIEW, {}, { tick: tick + minute });
  const trends = useAsk(
    TRENDS,
    { since: new Date(Math.floor(minute / HOUR) * HOUR - DAY + HOUR).toISOString() },
    { tick: tick + minute },
  );
  const failures = useAsk(
    FAILURES,
    { since: new Date(Math.floor(minute / HOUR) * HOUR - DAY).toISOString() },
    { tick },
  );
  const hourAgo = new Date(minute - HOUR).toISOString();
  const longest = useAsk(LONGEST, { hourAgo }, { tick });
  return (
    <Page
      title="Dashboard"
      about="What is running, what is stuck and why"
      actions={<CopyAs path="/v1/executions/counts?by=status" cli="ostinato executions counts" />}
    >
      <Stack>
        <Answer of={overview} lines={3}>
          {(data) => <Tiles data={data} />}
        </Answer>
        <Pipelines minute={minute} />
        <Grid>
          <Grid.Col span={{ base: 12, lg: 7 }}>
            <Paper h="100%">
              <Answer of={trends} lines={6}>
                {(data) => <Hours data={data} now={minute} />}
              </Answer>
              <Title order={2} mt="md" mb="xs">
                Failed in the last 24 hours
              </Title>
              <Answer of={failures}>{({ executions }) => <FailureList found={executions.nodes} />}</Answer>
            </Paper>
          </Grid.Col>
          <Grid.Col span={{ base: 12, lg: 5 }}>
            <Paper h="100%">
              <Group justify="space-between" mb="xs">
                <Title order={2}>Running longest</Title>
                <Overdue count={longest.data?.overdue[0]?.count} until={hourAgo} />
              </Group>
              <Answer of={longest}>
                {({ executions }) => <RunningList found={executions.nodes} now={minute} />}
              </Answer>
            </Paper>
          </Grid.Col>
        </Grid>
        <Paper>
          <Title order={2}>Functions</Title>
          <Text fz="xs" c="dimmed" mb="xs">
            How the tasks of the newest jobs of the last 24 hours went
          </Text>
          <Answer of={trends}>{(data) => <Functions data={data} />}</Answer>
        </Paper>
      </Stack>
    </Page>
  );
}

/** Nothing where there are none. */
function Pipelines({ minute }: { minute: number }) {
  const tick = useTick(ALL_ITEM_EVENTS, 2000) + minute;
  const pipelines = useAsk(PIPELINES, {}).data?.pipelines ?? [];
  if (pipelines.length === 0) return null;
  return (
    <Paper component="section" aria-label="Pipelines">
      <Title order={2} mb="xs">
        Pipelines
      </Title>
      <PipelineTable pipelines={pipelines} tick={tick} />
    </Paper>
  );
}

function Tiles({ data }: { data: Overview }) {
  const waiting = (kind: string) => data.waiting.find((one) => one.kind === kind);
  const retry = waiting('retry');
  const outside = (waiting('wait')?.tasks ?? 0) + (waiting('external')?.tasks ?? 0);
  const approvals = waiting('approval')?.tasks ?? 0;
  const ready = data.queues.reduce((sum, queue) => sum + queue.ready, 0);
  const oldest = data.queues.map((queue) => queue.oldestReadyAt).toSorted()[0];
  const workers = data.workers.filter((worker) => worker.queues.some((queue) => !queue.startsWith(OWN)));
  const alive = workers.filter((worker) => worker.alive).length;
  const { depth, alarm, threshold } = data.deadLetterDepth;
  const nobody = alive === 0 && ready > 0;
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }} spacing="sm">
      <Link to="/executions" search={{ status: ['RUNNING'] }} className="tile">
        <Tile title="Running" value={(data.running[0]?.count ?? 0).toLocaleString()} about="jobs" />
      </Link>
      <Tile
        title="Ready"
        value={ready.toLocaleString()}
        about={
          oldest ? (
            <>
              the oldest since <Moment at={oldest} />
            </>
          ) : (
            'nothing waits for a worker'
          )
        }
      />
      <Tile
        title="To be retried"
        value={(retry?.tasks ?? 0).toLocaleString()}
        about={
          retry?.nextDueAt ? (
            <>
              next <Moment at={retry.nextDueAt} />
            </>
          ) : (
            'nothing'
          )
        }
      />
      <Link to="/approvals" className="tile">
        <Tile
          title="Waiting for people"
          value={(outside + approvals).toLocaleString()}
          about={`${approvals.toLocaleString()} to approve, ${counted(outside, 'other')}`}
        />
      </Link>
      <Link to="/dead-letters" className="tile">
        <Tile
          title="Dead letters"
          value={depth.toLocaleString()}
          alarm={alarm}
          about={alarm ? `more than ${threshold}` : 'failed for good'}
        />
      </Link>
      <Link to="/workers" className="tile">
        <Tile
          title="Workers alive"
          value={alive}
          alarm={nobody}
          about={nobody ? 'tasks are ready and nobody runs them' : `of ${workers.length} known`}
        />
      </Link>
    </SimpleGrid>
  );
}

function Hours({ data, now }: { data: Trends; now: number }) {
  const counted = totals(data);
  const all = Object.values(counted).reduce((sum, count) => sum + count, 0);
  return (
    <>
      <Group justify="space-between" mb="xs">
        <Title order={2}>Jobs by hour</Title>
        <Text fz="sm" c="dimmed">
          {all.toLocaleString()} in 24 hours · {percent(failureRate(counted))} failed
        </Text>
      </Group>
      <div role="img" aria-label={`Jobs by hour and state: ${all} in 24 hours`}>
        <Suspense fallback={<Loading lines={6} />}>
          <HourChart data={buckets(data, now)} />
        </Suspense>
      </div>
      <Group gap="md" mt="xs">
        {STATUSES.map((status) => (
          <Text key={status} fz="xs">
            <Link
              to="/executions"
              search={{ status: [status], from: new Date(now - DAY).toISOString() }}
              className="link state"
            >
              <span
                className="state-dot"
                style={{ background: `var(--state-${stateOf(status)})` }}
                aria-hidden="true"
              />
              {label(stateOf(status))} {counted[status].toLocaleString()}
            </Link>
          </Text>
        ))}
      </Group>
    </>
  );
}

/** All that may be stuck: the list below it is of the oldest only. */
function Overdue({ count = 0, until }: { count?: number; until: string }) {
  return (
    <Text fz="sm" c="dimmed" component="div">
      {count === 0 ? (
        'nothing for more than an hour'
      ) : (
        <Link className="link bad" to="/executions" search={{ status: ['RUNNING'], until, order: 'oldest' }}>
          {count.toLocaleString()} for more than an hour
        </Link>
      )}
    </Text>
  );
}

function RunningList({ found, now }: { found: readonly Running[]; now: number }) {
  if (found.length === 0) {
    return (
      <Text fz="sm" c="dimmed">
        Nothing runs.
      </Text>
    );
  }
  return (
    <Stack gap="sm">
      {found.map((one) => {
        const task = one.job && culprit(one.job);
        return (
          <div key={one.executionArn}>
            <Text fz="sm" fw={600} component="div" className="clip">
              {one.jobId === null ? (
                one.agentName
              ) : (
                <Link
                  className="link"
                  to="/jobs/$jobId"
                  params={{ jobId: one.jobId }}
                  search={{ task: task?.taskId }}
                >
                  {one.agentName}
                </Link>
              )}{' '}
              <Text span fz="xs" c="dimmed" fw={400}>
                for <Elapsed from={one.startDate} to={null} />
              </Text>
              {now - Date.parse(one.startDate) > HOUR && (
                <Badge size="xs" color="red.9" mx={6}>
                  more than an hour
                </Badge>
              )}{' '}
              <Text span fz="xs" c="dimmed" fw={400} className="mono">
                {one.executionName}
              </Text>
            </Text>
            <Text fz="xs" c="dimmed">
              {task ? `${task.taskId}: ${task.why.sentence}` : 'It was reported from outside.'}
            </Text>
          </div>
        );
      })}
    </Stack>
  );
}

function FailureList({ found }: { found: readonly Failure[] }) {
  if (found.length === 0) {
    return (
      <Text fz="sm" c="dimmed">
        Nothing.
      </Text>
    );
  }
  return (
    <Stack gap="xs">
      {found.map((one) => {
        const task = one.job?.tasks.nodes[0];
        return (
          <div key={one.executionArn}>
            <Text fz="sm" fw={600} component="div" className="clip">
              {one.jobId === null ? (
                one.agentName
              ) : (
                <Link
                  className="link"
                  to="/jobs/$jobId"
                  params={{ jobId: one.jobId }}
                  search={{ task: task?.taskId }}
                >
                  {one.agentName}
                </Link>
              )}{' '}
              <Text span fz="xs" c="dimmed" fw={400}>
                <Moment at={one.stopDate ?? one.startDate} />
              </Text>
            </Text>
            <Text fz="xs" c="dimmed" className="clip">
              {task ? `${task.taskId}: ${errorLine(task.error)}` : label(stateOf(one.status))}
            </Text>
          </div>
        );
      })}
    </Stack>
  );
}

function Functions({ data }: { data: Trends }) {
  const functions = worstFirst(data.functionNumbers.filter((one) => !one.name.startsWith(OWN))).slice(
    0,
    SHOWN,
  );
  if (functions.length === 0) return <Nothing title="Nothing has run in the last 24 hours" />;
  return (
    <Sheet>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Function</Table.Th>
          <Table.Th ta="right">Completed</Table.Th>
          <Table.Th ta="right">Failed</Table.Th>
          <Table.Th ta="right">Failure rate</Table.Th>
          <Table.Th ta="right">Needed a retry</Table.Th>
          <Table.Th ta="right">Average time</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {functions.map((one) => (
          <Table.Tr key={one.name}>
            <Table.Td>{one.name}</Table.Td>
            <Table.Td ta="right">{one.completed.toLocaleString()}</Table.Td>
            <Table.Td ta="right">
              {one.failed > 0 ? (
                <Link className="link" to="/dead-letters" search={{ name: one.name }}>
                  {one.failed.toLocaleString()}
                </Link>
              ) : (
                0
              )}
            </Table.Td>
            <Table.Td ta="right" fw={one.failed > 0 ? 600 : undefined}>
              {percent(rateOf(one))}
            </Table.Td>
            <Table.Td ta="right">{one.retried.toLocaleString()}</Table.Td>
            <Table.Td ta="right">{duration(one.seconds * 1000)}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Sheet>
  );
}
