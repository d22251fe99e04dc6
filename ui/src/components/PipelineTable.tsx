/** Pipelines at a glance: what is on its way, what waits for people, what needs a look. */
import { Group, Table, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { CSSProperties, ReactNode } from 'react';
import { useAsk } from '../api/live';
import { doneInDay, occupied } from '../model/pipeline';
import { HEALTH, type Health, type PipelineLine } from '../services/pipelines';
import { Moment } from './bits';
import { Sparks } from './Sparks';

export function PipelineTable({ pipelines, tick }: { pipelines: readonly PipelineLine[]; tick: number }) {
  return (
    <Table.ScrollContainer minWidth={760}>
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Pipeline</Table.Th>
            <Table.Th ta="right">Not over</Table.Th>
            <Table.Th>For review</Table.Th>
            <Table.Th>To be retried</Table.Th>
            <Table.Th>Stuck</Table.Th>
            <Table.Th>Over in 24 hours</Table.Th>
            <Table.Th>Items by status</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {pipelines.map((one) => (
            <Row key={one.name} pipeline={one} tick={tick} />
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function Row({ pipeline, tick }: { pipeline: PipelineLine; tick: number }) {
  const { data, error } = useAsk(HEALTH, { name: pipeline.name }, { tick });
  const health = data?.pipelineHealth;
  const params = { name: pipeline.name };
  return (
    <Table.Tr>
      <Table.Td miw={180}>
        <Link className="link" to="/pipelines/$name" params={params} style={{ fontWeight: 600 }}>
          {pipeline.name}
        </Link>
        {pipeline.description && (
          <Text fz="xs" c="dimmed">
            {pipeline.description}
          </Text>
        )}
      </Table.Td>
      {health ? (
        <Numbers name={pipeline.name} health={health} />
      ) : (
        <Table.Td colSpan={6} c="dimmed">
          {error ? error.message : '…'}
        </Table.Td>
      )}
    </Table.Tr>
  );
}

function Numbers({ name, health }: { name: string; health: Health }) {
  const stuck = health.stuckCount;
  const done = doneInDay(health.throughput);
  return (
    <>
      <Table.Td ta="right">{health.items.toLocaleString()}</Table.Td>
      <Table.Td>
        <Count of={health.reviewsWaiting}>
          {health.oldestReviewAt && (
            <>
              the oldest <Moment at={health.oldestReviewAt} />
            </>
          )}
        </Count>
      </Table.Td>
      <Table.Td>
        {health.retrying > 0 ? (
          <Link className="link" to="/pipelines/$name" params={{ name }} search={{ show: 'retrying' }}>
            <Count of={health.retrying}>
              next <Moment at={health.nextRetryAt} />
            </Count>
          </Link>
        ) : (
          <Count of={0} />
        )}
      </Table.Td>
      <Table.Td>
        {stuck > 0 ? (
          <Link
            className="link bad"
            to="/pipelines/$name"
            params={{ name }}
            search={{ show: 'stuck' }}
            title={health.stuck[0]?.why}
          >
            <Count of={stuck} />
          </Link>
        ) : (
          <Count of={0} />
        )}
      </Table.Td>
      <Table.Td>
        <Group gap="xs" wrap="nowrap">
          <Text span fz="sm" miw={28} ta="right">
            {done.toLocaleString()}
          </Text>
          <Sparks
            values={health.throughput.map((hour) => hour.items)}
            label={`${done} items were over in 24 hours`}
          />
        </Group>
      </Table.Td>
      <Table.Td maw={360}>
        <StatusCounts name={name} health={health} />
      </Table.Td>
    </>
  );
}

function Count({ of: count, children }: { of: number; children?: ReactNode }) {
  return (
    <>
      <Text span fz="sm" c={count === 0 ? 'dimmed' : undefined} fw={count === 0 ? undefined : 600} inherit>
        {count.toLocaleString()}
      </Text>
      {children && count > 0 && (
        <Text span fz="xs" c="dimmed">
          {' '}
          {children}
        </Text>
      )}
    </>
  );
}

function StatusCounts({ name, health }: { name: string; health: Health }) {
  const counted = occupied(health.statuses);
  if (counted.length === 0) {
    return (
      <Text span fz="xs" c="dimmed">
        no items yet
      </Text>
    );
  }
  const most = Math.max(...counted.map((status) => status.items));
  return (
    <Group gap="4px 12px">
      {counted.map((status) => (
        <Link
          key={status.code}
          className="link quiet-link share"
          to="/pipelines/$name"
          params={{ name }}
          search={{ status: status.name }}
          style={{ '--share': `${(100 * status.items) / most}%` } as CSSProperties}
        >
          {status.name} <b>{status.items.toLocaleString()}</b>
        </Link>
      ))}
    </Group>
  );
}
