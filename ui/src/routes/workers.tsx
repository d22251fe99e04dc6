import { Paper, Stack, Table, Title } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useAsk } from '../api/live';
import { CopyAs } from '../components/actions';
import { Answer, Nothing } from '../components/Answer';
import { Moment, Page, State, useNow } from '../components/bits';
import { RetentionPanel } from '../components/RetentionPanel';
import { duration } from '../model/time';
import { FLEET, type Fleet } from '../services/fleet';
import { Sheet } from '../components/Sheet';

const EVERY = 5000;

export function Workers() {
  const asked = useAsk(FLEET, {}, { tick: Math.floor(useNow() / EVERY) });
  return (
    <Page
      title="Workers and functions"
      about="Who runs tasks, and which they can run"
      actions={<CopyAs path="/v1/workers" cli="ostinato workers" />}
    >
      <Answer of={asked}>
        {(data) => (
          <Stack>
            <Paper>
              <Title order={2} mb="xs">
                Workers
              </Title>
              <WorkerTable workers={data.workers} />
            </Paper>
            <Paper>
              <Title order={2} mb="xs">
                Functions
              </Title>
              <FunctionTable fleet={data} />
            </Paper>
            <Paper>
              <Title order={2} mb="xs">
                Retention
              </Title>
              <RetentionPanel kept={data.retention} again={asked.again} />
            </Paper>
          </Stack>
        )}
      </Answer>
    </Page>
  );
}

function WorkerTable({ workers }: { workers: Fleet['workers'] }) {
  if (workers.length === 0) {
    return <Nothing title="No worker is known">Start one with “ostinato worker shop.py:app”.</Nothing>;
  }
  return (
    <Sheet>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>State</Table.Th>
          <Table.Th>Worker</Table.Th>
          <Table.Th>Host</Table.Th>
          <Table.Th>Queues</Table.Th>
          <Table.Th>Started</Table.Th>
          <Table.Th>Lease until</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {workers.map((worker) => (
          <Table.Tr key={worker.workerId}>
            <Table.Td>{worker.alive ? <State state="alive" /> : <State state="gone" />}</Table.Td>
            <Table.Td className="mono" miw={150}>
              {worker.workerId}
            </Table.Td>
            <Table.Td>
              {worker.host ?? '–'}
              {worker.pid !== null && ` · ${worker.pid}`}
            </Table.Td>
            <Table.Td>{worker.queues.join(', ')}</Table.Td>
            <Table.Td>
              <Moment at={worker.startedAt} />
            </Table.Td>
            <Table.Td>
              <Moment at={worker.expiresAt} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Sheet>
  );
}

function FunctionTable({ fleet }: { fleet: Fleet }) {
  if (fleet.functions.length === 0) return <Nothing title="No function is known" />;
  const ready = new Map<string, number>();
  for (const queue of fleet.queues) ready.set(queue.name, (ready.get(queue.name) ?? 0) + queue.ready);
  return (
    <Sheet>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Function</Table.Th>
          <Table.Th ta="right">Ready</Table.Th>
          <Table.Th ta="right">Attempts</Table.Th>
          <Table.Th>Delay between them</Table.Th>
          <Table.Th ta="right">Timeout</Table.Th>
          <Table.Th className="together">Last registered</Table.Th>
          <Table.Th />
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {fleet.functions.map((one) => (
          <Table.Tr key={one.name}>
            <Table.Td fw={600}>{one.name}</Table.Td>
            <Table.Td ta="right">{(ready.get(one.name) ?? 0).toLocaleString()}</Table.Td>
            <Table.Td ta="right">{one.retry.maxAttempts}</Table.Td>
            <Table.Td className="together">
              {one.retry.maxAttempts > 1
                ? `${duration(one.retry.baseDelay * 1000)} × ${one.retry.multiplier}, at most ${duration(one.retry.maxDelay * 1000)}`
                : '–'}
            </Table.Td>
            <Table.Td ta="right">{one.timeout === null ? '–' : duration(one.timeout * 1000)}</Table.Td>
            <Table.Td>
              <Moment at={one.registeredAt} />
            </Table.Td>
            <Table.Td className="together">
              <Link className="link" to="/dead-letters" search={{ name: one.name }}>
                dead letters
              </Link>
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Sheet>
  );
}
