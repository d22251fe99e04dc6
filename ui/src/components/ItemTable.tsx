import { Table } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { afterTime } from '../model/pipeline';
import type { ItemLine } from '../services/pipelines';
import { Moment } from './bits';
import { Tone } from './Tone';

export function ItemTable({
  items,
  tones,
}: {
  items: readonly ItemLine[];
  tones: ReadonlyMap<string, string>;
}) {
  return (
    <Table.ScrollContainer minWidth={680}>
      <Table highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Item</Table.Th>
            <Table.Th>Status</Table.Th>
            <Table.Th>Since</Table.Th>
            <Table.Th>How it stands</Table.Th>
            <Table.Th ta="right">Failures</Table.Th>
            <Table.Th ta="right">Run</Table.Th>
            <Table.Th>Entered</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {items.map((item) => (
            <Table.Tr key={item.itemId}>
              <Table.Td className="mono clip" maw={300} title={item.itemId}>
                <Link className="link" to="/items/$itemId" params={{ itemId: item.itemId }}>
                  {item.itemId}
                </Link>
              </Table.Td>
              <Table.Td>
                <Tone status={item.status} tone={tones.get(item.status)} />
              </Table.Td>
              <Table.Td>
                <Moment at={item.statusAt} />
              </Table.Td>
              <Table.Td miw={220}>
                {item.retryAt ? (
                  <>
                    Retry <Moment at={item.retryAt} />
                    {afterTime(item.sentence)}
                  </>
                ) : (
                  item.sentence
                )}
              </Table.Td>
              <Table.Td ta="right">{item.failures || ''}</Table.Td>
              <Table.Td ta="right">{item.run}</Table.Td>
              <Table.Td>
                <Moment at={item.enteredAt} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
