import { Collapse, Group, Text, TextInput } from '@mantine/core';
import { useMemo, useState } from 'react';
import { eventTimes, withoutTimes } from '../model/eventTimes';
import type { RunEvent } from '../model/run';
import { brief } from '../model/payload';
import { absolute } from '../model/time';
import { counted } from '../model/words';
import { Moment } from './bits';
import { Payload } from './Payload';
import { Rows } from './Rows';

/** What happened, in order. One event can be opened to see all of it. */
export function EventList({
  events,
  complete,
  cut,
}: {
  events: readonly RunEvent[];
  complete: boolean;
  /** There are more than are shown here. */
  cut: boolean;
}) {
  const [wanted, setWanted] = useState('');
  const [opened, setOpened] = useState<number | null>(null);
  const shown = useMemo(() => {
    const text = wanted.trim().toLowerCase();
    return text === ''
      ? events
      : events.filter((event) => `${event.type} ${event.taskId ?? ''}`.toLowerCase().includes(text));
  }, [events, wanted]);
  const event = opened === null ? undefined : events.find((one) => one.seq === opened);
  return (
    <div style={{ display: 'flex', flexDirection: 'column', height: '100%' }}>
      <div style={{ padding: 8, display: 'flex', gap: 12, alignItems: 'center' }}>
        <TextInput
          placeholder="Type or task"
          aria-label="Only events of this type or task"
          value={wanted}
          onChange={(change) => setWanted(change.currentTarget.value)}
        />
        <Text fz="sm" c="dimmed" role="status">
          {counted(shown.length, 'event')}
          {complete ? '' : cut ? ', the first of more' : ', reading on…'}
        </Text>
      </div>
      <div style={{ flex: 1, minHeight: 0 }}>
        <Rows
          items={shown}
          height={30}
          label="Events"
          keyOf={(one) => one.seq}
          isChosen={(one) => one.seq === opened}
          onChoose={(one) => setOpened(one.seq === opened ? null : one.seq)}
          render={(one) => (
            <>
              <Text span fz="xs" c="dimmed" w={{ base: 28, sm: 54 }} ta="right" flex="none">
                {one.seq}
              </Text>
              <Text span fz="sm" fw={600} w={{ base: 150, sm: 170 }} flex="none" className="clip">
                {one.type}
              </Text>
              <Text span fz="sm" w={{ sm: 170 }} flex={{ base: 1, sm: 'none' }} className="clip">
                {one.taskId}
              </Text>
              <Text span fz="xs" className="mono clip" c="dimmed" flex={1} visibleFrom="sm">
                <Times of={one} />
                {brief(withoutTimes(one.properties), 160)}
              </Text>
              <Text span fz="xs" w={{ base: 60, sm: 90 }} flex="none">
                <Moment at={one.at} />
              </Text>
            </>
          )}
        />
      </div>
      <Collapse expanded={event !== undefined}>
        {event && (
          <div style={{ padding: 12, borderTop: '1px solid var(--line)' }}>
            <ExactTimes of={event} />
            <Payload label={`${event.type}, ${absolute(Date.parse(event.at))}`} value={event.properties} />
          </div>
        )}
      </Collapse>
    </div>
  );
}

/** In the line of an event: relative, as everywhere. */
function Times({ of: event }: { of: RunEvent }) {
  return eventTimes(event.properties).map(({ name, at }) => (
    <Text key={name} span inherit c="var(--mantine-color-text)" ff="text" mr={8}>
      {name} <Moment at={at} />
    </Text>
  ));
}

/** Above the data of an opened one, in which they are numbers. */
function ExactTimes({ of: event }: { of: RunEvent }) {
  return eventTimes(event.properties).map(({ name, at }) => (
    <Group key={name} gap={6} mb={6} fz="sm">
      <b>{name}</b>
      <Moment at={at} />
      <Text span inherit c="dimmed">
        {absolute(Date.parse(at))}
      </Text>
    </Group>
  ));
}
