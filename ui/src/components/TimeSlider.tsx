import { Button, Group, Slider, Text } from '@mantine/core';
import type { RunEvent } from '../model/run';
import { absolute } from '../model/time';
import { counted } from '../model/words';

/** The job as it was after any event. At its end it is the job as it is. */
export function TimeSlider({
  events,
  at,
  onChange,
}: {
  events: readonly RunEvent[];
  at: number | undefined;
  onChange: (seq: number | undefined) => void;
}) {
  const last = events.at(-1)?.seq ?? 1;
  const event = at === undefined ? undefined : events.find((one) => one.seq === at);
  return (
    <Group gap="sm" wrap="nowrap" mt="xs" className="slider">
      <Button
        variant={at === undefined ? 'light' : 'default'}
        onClick={() => onChange(undefined)}
        aria-pressed={at === undefined}
      >
        Now
      </Button>
      <Slider
        flex={1}
        min={1}
        max={Math.max(2, last)}
        value={at ?? last}
        onChange={(seq) => onChange(seq >= last ? undefined : seq)}
        label={(seq) => `event ${seq}`}
        size="sm"
        thumbLabel="Show the job as of this event"
      />
      <Text fz="xs" c="dimmed" maw={420} className="clip" ta="right">
        {event
          ? `${event.seq} of ${last}: ${event.type}${event.taskId ? ` ${event.taskId}` : ''}, ${absolute(Date.parse(event.at))}`
          : counted(last, 'event')}
      </Text>
    </Group>
  );
}
