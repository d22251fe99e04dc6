import { Alert, Checkbox, Group, Select, Stack, Table, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useAsk } from '../api/live';
import { Action, CopyAs, useAct } from '../components/actions';
import { Answer, Nothing } from '../components/Answer';
import { Copy, Moment, Page, State } from '../components/bits';
import { useViewer } from '../components/Doorway';
import { CREATE_KEY, KEYS, REVOKE_KEY, SCOPES, type Key } from '../services/keys';
import { Sheet } from '../components/Sheet';

const DAY = 86_400;
const LIVES = [
  { value: '', label: 'until it is revoked' },
  { value: String(DAY), label: '1 day' },
  { value: String(30 * DAY), label: '30 days' },
  { value: String(365 * DAY), label: '1 year' },
];

export function Keys() {
  const asked = useAsk(KEYS, {});
  const viewer = useViewer();
  const [made, setMade] = useState<string | null>(null);
  return (
    <Page
      title="Keys"
      about={`Who may talk to the server as ${viewer.tenant}, and what they may do`}
      actions={
        <>
          <CopyAs cli="ostinato keys ls" />
          <NewKey onMade={setMade} again={asked.again} first={asked.data?.keys.length === 0} />
        </>
      }
    >
      {made !== null && (
        <Alert
          color="green"
          variant="outline"
          mb="md"
          title="Keep this key now: it cannot be shown again"
          withCloseButton
          onClose={() => setMade(null)}
        >
          <Group gap="xs">
            <span className="mono" data-key>
              {made}
            </span>
            <Copy text={made} label="Copy the key" />
          </Group>
        </Alert>
      )}
      <Answer of={asked}>
        {({ keys }) =>
          keys.length === 0 ? (
            <Nothing title="There are no keys">
              Everybody at the machine of the server may do everything.
            </Nothing>
          ) : (
            <KeyTable keys={keys} again={asked.again} own={viewer.keyId} />
          )
        }
      </Answer>
    </Page>
  );
}

function KeyTable({ keys, again, own }: { keys: readonly Key[]; again: () => void; own: string | null }) {
  const act = useAct();
  return (
    <Sheet highlightOnHover>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Name</Table.Th>
          <Table.Th>Key id</Table.Th>
          <Table.Th>State</Table.Th>
          <Table.Th>Scopes</Table.Th>
          <Table.Th>Made</Table.Th>
          <Table.Th>Last used</Table.Th>
          <Table.Th>Expires</Table.Th>
          <Table.Th />
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {keys.map((key) => (
          <Table.Tr key={key.keyId}>
            <Table.Td fw={600}>{key.name}</Table.Td>
            <Table.Td className="mono">{key.keyId}</Table.Td>
            <Table.Td>
              <State state={key.state} />
            </Table.Td>
            <Table.Td>{key.scopes.join(', ')}</Table.Td>
            <Table.Td>
              <Moment at={key.createdAt} />
            </Table.Td>
            <Table.Td>{key.lastUsedAt ? <Moment at={key.lastUsedAt} /> : 'never'}</Table.Td>
            <Table.Td>{key.expiresAt ? <Moment at={key.expiresAt} /> : 'never'}</Table.Td>
            <Table.Td ta="right">
              {key.state === 'works' && (
                <Action
                  label="Revoke"
                  title={`Revoke the key ${key.name}`}
                  danger
                  act={async () => {
                    await act(REVOKE_KEY, { keyId: key.keyId });
                    again();
                    return `${key.name} opens nothing any more`;
                  }}
                >
                  <Text fz="sm">
                    {key.keyId === own
                      ? 'This is the key that you are signed in with: you are locked out at once. '
                      : ''}
                    Whoever uses it is refused within seconds, and what it has open is closed.
                  </Text>
                </Action>
              )}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Sheet>
  );
}

function NewKey({
  onMade,
  again,
  first,
}: {
  onMade: (text: string) => void;
  again: () => void;
  first: boolean;
}) {
  const act = useAct();
  const [name, setName] = useState('');
  const [scopes, setScopes] = useState<string[]>(['jobs:read']);
  const [life, setLife] = useState('');
  return (
    <Action
      label="New key"
      variant="filled"
      title="Make a key"
      confirm="Make it"
      act={async () => {
        const { createKey } = await act(CREATE_KEY, {
          name: name || 'key',
          scopes,
          expiresIn: life ? Number(life) : null,
        });
        onMade(createKey.text);
        if (!first) again();
        return 'The key is made';
      }}
    >
      <Stack gap="sm">
        {first && (
          <Alert color="orange" variant="outline" title="This closes the open door">
            From the first key on, nobody comes in without one. Give this one the scope admin, and keep it.
          </Alert>
        )}
        <TextInput
          label="Name"
          placeholder="what it is for"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <Checkbox.Group label="What it may do" value={scopes} onChange={setScopes}>
          <Stack gap={6} mt={4}>
            {SCOPES.map((scope) => (
              <Checkbox key={scope.value} size="xs" value={scope.value} label={scope.label} />
            ))}
          </Stack>
        </Checkbox.Group>
        <Select
          label="How long it works"
          data={LIVES}
          value={life}
          onChange={(value) => setLife(value ?? '')}
          allowDeselect={false}
        />
      </Stack>
    </Action>
  );
}
