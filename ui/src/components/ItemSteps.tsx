/** The steps of an item: how each stands, how often it was tried, and what it came to. */
import { Button, Group, Paper, Stack, Table, Text, Title } from '@mantine/core';
import { Fragment, useState } from 'react';
import { errorLine } from '../model/payload';
import { isWork, RESTART, type Item, type ItemStep } from '../services/items';
import { may } from '../services/viewer';
import { Action, useAct } from './actions';
import { Elapsed, Moment, State } from './bits';
import { useViewer } from './Doorway';
import { Payload } from './Payload';
import { Sheet } from './Sheet';

export function ItemSteps({ item, again }: { item: Item; again: () => void }) {
  const [shown, setShown] = useState<string | null>(null);
  const { steps } = item.detail;
  const results = item.detail.results as Record<string, unknown>;
  return (
    <Paper component="section" aria-label="Steps">
      <Title order={2} mb="xs">
        Steps
      </Title>
      <Sheet>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Step</Table.Th>
            <Table.Th>State</Table.Th>
            <Table.Th ta="right">Attempts</Table.Th>
            <Table.Th>Took</Table.Th>
            <Table.Th />
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {steps.map((step) => (
            <Fragment key={step.step}>
              <Row
                item={item}
                step={step}
                hasMore={step.step in results || step.attempts.length > 0}
                open={shown === step.step}
                onShow={() => setShown(shown === step.step ? null : step.step)}
                again={again}
              />
              {shown === step.step && (
                <Table.Tr>
                  <Table.Td colSpan={5}>
                    <More step={step} result={results[step.step]} has={step.step in results} />
                  </Table.Td>
                </Table.Tr>
              )}
            </Fragment>
          ))}
        </Table.Tbody>
      </Sheet>
    </Paper>
  );
}

interface RowProps {
  readonly item: Item;
  readonly step: ItemStep;
  readonly hasMore: boolean;
  readonly open: boolean;
  readonly onShow: () => void;
  readonly again: () => void;
}

function Row({ item, step, hasMore, open, onShow, again }: RowProps) {
  const last = step.attempts.at(-1);
  return (
    <Table.Tr>
      <Table.Td>
        <Text span fz="sm" fw={item.step === step.step && item.open ? 600 : undefined}>
          {step.step}
        </Text>
        {step.optional && (
          <Text span fz="xs" c="dimmed">
            {' '}
            optional
          </Text>
        )}
        {step.when !== null && (
          <Text fz="xs" c="dimmed" className="mono clip" maw={120} title={step.when}>
            only if {step.when}
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        <State state={step.state} />
      </Table.Td>
      <Table.Td ta="right">{step.attempts.length || ''}</Table.Td>
      <Table.Td>
        {step.retryAt ? (
          <>
            retry <Moment at={step.retryAt} />
          </>
        ) : (
          last && <Elapsed from={last.startedAt} to={last.endedAt} />
        )}
      </Table.Td>
      <Table.Td>
        <Group gap={4} justify="flex-end" wrap="nowrap">
          {hasMore && (
            <Button
              variant="subtle"
              size="compact-xs"
              aria-expanded={open}
              aria-label={`Details of ${step.step}`}
              onClick={onShow}
            >
              {open ? 'Less' : 'Details'}
            </Button>
          )}
          <Restarts item={item} step={step} again={again} />
        </Group>
      </Table.Td>
    </Table.Tr>
  );
}

function Restarts({ item, step, again }: { item: Item; step: ItemStep; again: () => void }) {
  const act = useAct();
  const viewer = useViewer();
  const { itemId } = item;
  const at = step.step;
  if (!may(viewer, 'jobs:write') || !item.detail.places.includes(at)) return null;
  return (
    <>
      <Action
        label="From here"
        variant="subtle"
        size="compact-xs"
        title={`Go on from ${at}`}
        confirm="Go on"
        act={async () => {
          const { restartItem } = await act(RESTART, { itemId, at });
          again();
          return `Run ${restartItem.run} has begun at ${at}`;
        }}
      >
        <Text fz="sm">This step and all that follow it run again; what was done before is kept.</Text>
      </Action>
      {isWork(step) && (
        <Action
          label="Only this"
          variant="subtle"
          size="compact-xs"
          title={`Run ${at} alone`}
          confirm="Run it"
          act={async () => {
            const { restartItem } = await act(RESTART, { itemId, at, only: true });
            again();
            return `Run ${restartItem.run} does ${at} alone`;
          }}
        >
          <Text fz="sm">This step runs again, and no other. The item rests when it is done.</Text>
        </Action>
      )}
    </>
  );
}

function More({ step, result, has }: { step: ItemStep; result: unknown; has: boolean }) {
  return (
    <Stack gap="xs">
      {step.attempts.map((attempt) => (
        <Group key={`${attempt.run}:${attempt.attempt}`} gap="sm" wrap="nowrap" align="flex-start">
          <Text fz="xs" c="dimmed" w={110} flex="none">
            run {attempt.run}, attempt {attempt.attempt}
          </Text>
          <State state={attempt.outcome} size="xs" />
          <Text fz="xs" c="dimmed" flex="none">
            <Moment at={attempt.startedAt} />, <Elapsed from={attempt.startedAt} to={attempt.endedAt} />
          </Text>
          {attempt.error !== null && <Text fz="xs">{errorLine(attempt.error)}</Text>}
        </Group>
      ))}
      {has && <Payload label={`Result of ${step.step}`} value={result} />}
    </Stack>
  );
}
