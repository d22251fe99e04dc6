/** How a pipeline does: what fails, what takes long, what is stuck and why, how much gets done. */
import { Grid, Paper, Stack, Table, Text, Title } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { percent } from '../model/dashboard';
import { doneInDay, occupied } from '../model/pipeline';
import { duration } from '../model/time';
import { counted } from '../model/words';
import type { Health } from '../services/pipelines';
import { Loading } from './Answer';
import { Moment } from './bits';
import { Tone } from './Tone';
import { Sheet } from './Sheet';

const StatusChart = lazy(() => import('./ItemCharts').then((charts) => ({ default: charts.Statuses })));
const HourlyChart = lazy(() => import('./ItemCharts').then((charts) => ({ default: charts.Hours })));

export function HealthPanel({ health, tones }: { health: Health; tones: ReadonlyMap<string, string> }) {
  return (
    <Grid>
      <Grid.Col span={{ base: 12, lg: 7 }}>
        <Stack>
          <Paper>
            <Title order={2}>Steps</Title>
            <Text fz="xs" c="dimmed" mb="xs">
              Attempts of the last 24 hours
            </Text>
            <Steps steps={health.steps} />
          </Paper>
          <Paper>
            <Title order={2} mb="xs">
              Stuck for more than an hour
            </Title>
            <Stuck stuck={health.stuck} tones={tones} />
            {health.stuckCount > health.stuck.length && (
              <Text fz="sm" c="dimmed" mt="xs">
                The {health.stuck.length} longest of {health.stuckCount.toLocaleString()}.
              </Text>
            )}
          </Paper>
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, lg: 5 }}>
        <Suspense fallback={<Loading lines={6} />}>
          <Stack>
            <Paper>
              <Title order={2} mb="xs">
                Items by status
              </Title>
              <StatusChart statuses={occupied(health.statuses)} tones={tones} />
            </Paper>
            <Paper>
              <Title order={2}>Over by hour</Title>
              <Text fz="xs" c="dimmed" mb="xs">
                {counted(doneInDay(health.throughput), 'item')} in 24 hours
              </Text>
              <HourlyChart hours={health.throughput} />
            </Paper>
          </Stack>
        </Suspense>
      </Grid.Col>
    </Grid>
  );
}

const seconds = (value: number | null) => (value === null ? '–' : duration(value * 1000));

function Steps({ steps }: { steps: Health['steps'] }) {
  return (
    <Sheet>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Step</Table.Th>
          <Table.Th ta="right">Completed</Table.Th>
          <Table.Th ta="right">Failed</Table.Th>
          <Table.Th ta="right">Failure rate</Table.Th>
          <Table.Th ta="right">Average</Table.Th>
          <Table.Th ta="right">95 % within</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {steps.map((step) => (
          <Table.Tr key={step.step}>
            <Table.Td>{step.step}</Table.Td>
            <Table.Td ta="right">{step.completed.toLocaleString()}</Table.Td>
            <Table.Td ta="right">{step.failed.toLocaleString()}</Table.Td>
            <Table.Td ta="right" fw={step.failed > 0 ? 600 : undefined}>
              {percent(step.failureRate)}
            </Table.Td>
            <Table.Td ta="right">{seconds(step.averageSeconds)}</Table.Td>
            <Table.Td ta="right">{seconds(step.p95Seconds)}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Sheet>
  );
}

function Stuck({ stuck, tones }: { stuck: Health['stuck']; tones: ReadonlyMap<string, string> }) {
  if (stuck.length === 0) {
    return (
      <Text fz="sm" c="dimmed">
        Nothing.
      </Text>
    );
  }
  return (
    <Sheet>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Item</Table.Th>
          <Table.Th>Status</Table.Th>
          <Table.Th>Since</Table.Th>
          <Table.Th>Why</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {stuck.map((item) => (
          <Table.Tr key={item.itemId}>
            <Table.Td className="mono clip" maw={220}>
              <Link className="link" to="/items/$itemId" params={{ itemId: item.itemId }}>
                {item.itemId}
              </Link>
            </Table.Td>
            <Table.Td>
              <Tone status={item.status} tone={tones.get(item.status)} />
            </Table.Td>
            <Table.Td>
              <Moment at={item.since} />
            </Table.Td>
            <Table.Td>{item.why}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Sheet>
  );
}
