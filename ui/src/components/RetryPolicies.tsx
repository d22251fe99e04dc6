/** How often and how soon each step is tried again, as it is now. */
import { Group, NumberInput, Paper, SimpleGrid, Table, Text, Title } from '@mantine/core';
import { useState } from 'react';
import { useAsk } from '../api/live';
import { delays } from '../model/pipeline';
import { duration } from '../model/time';
import { POLICIES, RESET_POLICY, SET_POLICY, type Policy } from '../services/pipelines';
import { may } from '../services/viewer';
import { Action, useAct } from './actions';
import { Answer } from './Answer';
import { useViewer } from './Doorway';
import { Sheet } from './Sheet';

export function RetryPolicies({ pipeline, tick }: { pipeline: string; tick: number }) {
  const asked = useAsk(POLICIES, { pipeline }, { tick });
  const viewer = useViewer();
  return (
    <Paper component="section" aria-label="Retry policies">
      <Title order={2}>Retry policies</Title>
      <Text fz="xs" c="dimmed" mb="xs">
        What is changed here holds from now on, also for items that are under way
      </Text>
      <Answer of={asked}>
        {({ retryPolicies }) => (
          <Sheet>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Step</Table.Th>
                <Table.Th ta="right">Attempts</Table.Th>
                <Table.Th>Pauses between them</Table.Th>
                <Table.Th />
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {(retryPolicies ?? []).map((policy) => (
                <Table.Tr key={policy.step}>
                  <Table.Td>{policy.step}</Table.Td>
                  <Table.Td ta="right">{policy.retry.maxAttempts}</Table.Td>
                  <Table.Td>
                    {told(policy)}
                    {policy.changed && (
                      <Text span fz="xs" c="dimmed">
                        {' '}
                        · not as in the definition
                      </Text>
                    )}
                  </Table.Td>
                  <Table.Td>
                    {may(viewer, 'config:write') && (
                      <Change pipeline={pipeline} policy={policy} onDone={asked.again} />
                    )}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Sheet>
        )}
      </Answer>
    </Paper>
  );
}

const SHOWN = 4;

function told({ retry }: Policy): string {
  const pauses = delays(retry, SHOWN).map((seconds) => duration(seconds * 1000));
  if (pauses.length === 0) return 'never tried again';
  return pauses.join(', ') + (retry.maxAttempts - 1 > SHOWN ? ', …' : '');
}

const FIELDS = [
  ['maxAttempts', 'Attempts, the first included', 1, 1000],
  ['baseDelay', 'Seconds before the second', 0, 1e9],
  ['multiplier', 'Times longer each time', 1, 100],
  ['maxDelay', 'At most this many seconds', 0, 1e9],
  ['jitter', 'Shortened at random by up to (0 to 1)', 0, 1],
] as const;

/** Answers name their type, which an input does not have. */
function asInput(retry: Policy['retry']) {
  const { maxAttempts, baseDelay, multiplier, maxDelay, jitter } = retry;
  return { maxAttempts, baseDelay, multiplier, maxDelay, jitter };
}

function Change({ pipeline, policy, onDone }: { pipeline: string; policy: Policy; onDone: () => void }) {
  const act = useAct();
  const { step } = policy;
  const [retry, setRetry] = useState(policy.retry);
  return (
    <Group gap="xs" justify="flex-end" wrap="nowrap">
      {policy.changed && (
        <Action
          label="Reset"
          title={`Try ${step} again as the definition says`}
          act={async () => {
            await act(RESET_POLICY, { pipeline, step });
            onDone();
            return `${step} is tried again as the definition says`;
          }}
        />
      )}
      <Action
        label="Change…"
        title={`When ${step} is tried again`}
        confirm="Change"
        onOpen={() => setRetry(policy.retry)}
        act={async () => {
          await act(SET_POLICY, { pipeline, step, retry: asInput(retry) });
          onDone();
          return `${step} is tried ${retry.maxAttempts} times`;
        }}
      >
        <SimpleGrid cols={2}>
          {FIELDS.map(([field, label, min, max]) => (
            <NumberInput
              key={field}
              label={label}
              size="xs"
              min={min}
              max={max}
              value={retry[field]}
              onChange={(value) => setRetry({ ...retry, [field]: Number(value) })}
            />
          ))}
        </SimpleGrid>
        <Text fz="sm" c="dimmed">
          Pauses: {told({ ...policy, retry })}
        </Text>
      </Action>
    </Group>
  );
}
