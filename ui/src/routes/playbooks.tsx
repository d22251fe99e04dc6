import { Table, Tabs, Text } from '@mantine/core';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useAsk } from '../api/live';
import { CopyAs } from '../components/actions';
import { Answer, Nothing } from '../components/Answer';
import { Moment, Page } from '../components/bits';
import { readShelfSearch } from '../model/search';
import { PLAYBOOKS, type Shelf } from '../services/playbooks';
import { Sheet } from '../components/Sheet';

const route = getRouteApi('/playbooks');

export function Playbooks() {
  const { tab } = route.useSearch();
  const navigate = route.useNavigate();
  const asked = useAsk(PLAYBOOKS, {});
  return (
    <Page
      title="Playbooks"
      about="Which agents answer for which domain"
      actions={<CopyAs path="/v1/playbooks" cli="ostinato playbooks ls" />}
    >
      <Answer of={asked}>
        {(data) => (
          <Tabs
            value={tab ?? 'playbooks'}
            onChange={(next) => void navigate({ search: readShelfSearch({ tab: next }) })}
          >
            <Tabs.List mb="sm">
              <Tabs.Tab value="playbooks">Playbooks {data.playbooks.length}</Tabs.Tab>
              <Tabs.Tab value="agents">Agents {data.agents.length}</Tabs.Tab>
              <Tabs.Tab value="graphs">Graphs {data.graphs.length}</Tabs.Tab>
            </Tabs.List>
            <Tabs.Panel value="playbooks">
              <PlaybookTable playbooks={data.playbooks} />
            </Tabs.Panel>
            <Tabs.Panel value="agents">
              <Definitions kind="agent" all={data.agents} />
            </Tabs.Panel>
            <Tabs.Panel value="graphs">
              <Definitions kind="graph" all={data.graphs} />
            </Tabs.Panel>
          </Tabs>
        )}
      </Answer>
    </Page>
  );
}

function PlaybookTable({ playbooks }: { playbooks: Shelf['playbooks'] }) {
  if (playbooks.length === 0) {
    return <Nothing title="There are no playbooks">Load some with “ostinato playbooks apply DIR”.</Nothing>;
  }
  return (
    <Sheet highlightOnHover>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Playbook</Table.Th>
          <Table.Th>Domain</Table.Th>
          <Table.Th>For</Table.Th>
          <Table.Th>Agents</Table.Th>
          <Table.Th>Version</Table.Th>
          <Table.Th>Changed</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {playbooks.map((one) => (
          <Table.Tr key={one.name}>
            <Table.Td miw={200}>
              <Link className="link" to="/playbooks/$name" params={{ name: one.name }}>
                {one.name}
              </Link>
              {one.description && (
                <Text fz="xs" c="dimmed">
                  {one.description}
                </Text>
              )}
            </Table.Td>
            <Table.Td>{one.domain}</Table.Td>
            <Table.Td>{one.type}</Table.Td>
            <Table.Td className="clip" maw={360} title={one.agents.join(', ')}>
              {one.agents.join(', ')}
            </Table.Td>
            <Table.Td>{one.version}</Table.Td>
            <Table.Td>
              <Moment at={one.createdAt} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Sheet>
  );
}

function Definitions({ kind, all }: { kind: 'agent' | 'graph'; all: Shelf['graphs'] | Shelf['agents'] }) {
  if (all.length === 0) return <Nothing title={`There are no ${kind}s`} />;
  return (
    <Sheet highlightOnHover>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Name</Table.Th>
          {kind === 'agent' && <Table.Th>Kind</Table.Th>}
          <Table.Th>Description</Table.Th>
          <Table.Th>Version</Table.Th>
          <Table.Th>Changed</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {all.map((one) => (
          <Table.Tr key={one.name}>
            <Table.Td>
              <Link className="link" to="/definitions/$kind/$name" params={{ kind, name: one.name }}>
                {one.name}
              </Link>
            </Table.Td>
            {kind === 'agent' && <Table.Td>{'kind' in one ? one.kind : ''}</Table.Td>}
            <Table.Td miw={200}>{one.description}</Table.Td>
            <Table.Td>{one.version}</Table.Td>
            <Table.Td>
              <Moment at={one.createdAt} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Sheet>
  );
}
