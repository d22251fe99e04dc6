import { Table } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useAsk, useTick } from '../api/live';
import { CopyAs } from '../components/actions';
import { Answer, Nothing } from '../components/Answer';
import { Moment, Page } from '../components/bits';
import { GateBar } from '../components/GateBar';
import { GATE_KEYS, GATE_PREFIX, GATES } from '../services/gates';
import { Sheet } from '../components/Sheet';

/** Members report by completing tasks of the job of their gate. */
const WATCHED = { types: ['Gate Opened', 'Job Created', 'Task Completed', 'Task Failed'] };
const NEWEST = 3;

export function Gates() {
  const tick = useTick(WATCHED, 2000, (event) => event.jobName?.startsWith(GATE_PREFIX) ?? false);
  const asked = useAsk(GATES, {}, { tick });
  return (
    <Page
      title="Gates"
      about="Each opens for a key when all its members have reported, and starts what comes next"
      actions={<CopyAs path="/v1/gates" cli="ostinato gates ls" />}
    >
      <Answer of={asked}>
        {({ gates }) =>
          gates.length === 0 ? (
            <Nothing title="There are no gates">Define one with “ostinato gates apply gate.json”.</Nothing>
          ) : (
            <Sheet highlightOnHover>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Gate</Table.Th>
                  <Table.Th>Newest keys</Table.Th>
                  <Table.Th>Version</Table.Th>
                  <Table.Th>Changed</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {gates.map((gate) => (
                  <Table.Tr key={gate.name}>
                    <Table.Td>
                      <Link className="link" to="/gates/$name" params={{ name: gate.name }}>
                        {gate.name}
                      </Link>
                      {gate.description && <div>{gate.description}</div>}
                    </Table.Td>
                    <Table.Td>
                      <NewestKeys gate={gate.name} tick={tick} />
                    </Table.Td>
                    <Table.Td>{gate.version}</Table.Td>
                    <Table.Td>
                      <Moment at={gate.createdAt} />
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Sheet>
          )
        }
      </Answer>
    </Page>
  );
}

function NewestKeys({ gate, tick }: { gate: string; tick: number }) {
  const asked = useAsk(GATE_KEYS, { gate, first: NEWEST }, { tick });
  const keys = asked.data?.gateKeys.nodes ?? [];
  if (asked.data && keys.length === 0) return <>nobody has reported</>;
  return (
    <>
      {keys.map((one) => (
        <GateBar key={one.key} gate={gate} one={one} />
      ))}
    </>
  );
}
