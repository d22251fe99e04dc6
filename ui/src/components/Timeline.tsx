import { Group, Text } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { useMemo, type CSSProperties } from 'react';
import type { RunEvent, TaskRow } from '../model/run';
import { lanes, lastAttempts, marks, span, type Attempt, type Lane } from '../model/timeline';
import { absolute, duration } from '../model/time';
import { label } from '../model/states';
import { Loading, Nothing } from './Answer';
import { State, useNow } from './bits';
import { Rows } from './Rows';

/** As wide as the names may be, but never more than a third. */
const NAMES = 'min(180px, 33%)';
/** A mark with its words needs so many pixels. */
const MARK = 70;
const WORDS = 40;

/** Every attempt as a bar over time, one line for each task. */
export function Timeline({
  events,
  complete,
  cut,
  tasks,
  chosen,
  onChoose,
}: {
  events: readonly RunEvent[];
  /** All events are there. */
  complete: boolean;
  /** There are too many: of tasks that only later ones tell of, the last attempt is known. */
  cut: boolean;
  tasks: readonly TaskRow[];
  chosen: string | undefined;
  onChoose: (taskId: string) => void;
}) {
  const now = useNow();
  const { ref, width: room } = useElementSize();
  const found = useMemo(
    () => (cut ? lastAttempts(lanes(events), tasks) : lanes(events)),
    [events, cut, tasks],
  );
  const outcomes = useMemo(
    () => [...new Set(found.flatMap((lane) => lane.attempts.map(outcomeOf)))],
    [found],
  );
  const whole = span(found, now);
  const width = whole.end - whole.start;
  const place = (at: number) => `${(100 * (at - whole.start)) / width}%`;
  if (found.length === 0) return complete ? <Nothing title="Nothing has run yet" /> : <Loading />;
  return (
    <div style={{ display: 'flex', flexDirection: 'column', height: '100%' }}>
      <div className="row" style={{ position: 'relative', height: 26 }}>
        <span style={{ width: NAMES, flex: 'none' }} />
        <div className="lane" ref={ref} style={{ height: 18 }}>
          {marks(whole, Math.max(1, Math.min(6, Math.floor(room / MARK))))
            .filter((at) => room * (1 - at / width) > WORDS)
            .map((at) => (
              <Text
                key={at}
                span
                fz={11}
                c="dimmed"
                className="together"
                style={{ position: 'absolute', left: place(whole.start + at) }}
              >
                {at === 0 ? '0' : duration(at)}
              </Text>
            ))}
        </div>
      </div>
      <Legend outcomes={outcomes} />
      {cut && (
        <Text fz="xs" c="dimmed" px="sm" py={4} role="note">
          All attempts of the first {events.length.toLocaleString()} events; after them, the last attempt of
          each task.
        </Text>
      )}
      <div style={{ flex: 1, minHeight: 0 }}>
        <Rows
          items={found}
          height={28}
          label="Attempts over time"
          keyOf={(lane) => lane.taskId}
          isChosen={(lane) => lane.taskId === chosen}
          onChoose={(lane) => onChoose(lane.taskId)}
          render={(lane) => <Bars lane={lane} now={now} place={place} width={width} />}
        />
      </div>
    </div>
  );
}

const outcomeOf = (attempt: Attempt) => attempt.outcome;

/** What the colours mean, of which some are rarely seen. */
function Legend({ outcomes }: { outcomes: readonly string[] }) {
  return (
    <Group gap="md" px="sm" py={4} className="row" style={{ position: 'static' }}>
      {outcomes.map((outcome) => (
        <State key={outcome} state={outcome} size="xs" />
      ))}
    </Group>
  );
}

function Bars({
  lane,
  now,
  place,
  width,
}: {
  lane: Lane;
  now: number;
  place: (at: number) => string;
  width: number;
}) {
  return (
    <>
      <span className="clip" style={{ width: NAMES, flex: 'none' }}>
        {lane.taskId}
      </span>
      <span className="lane">
        {lane.attempts.map((attempt) => {
          const end = attempt.end ?? now;
          const said = `Attempt ${attempt.attempt}: ${label(attempt.outcome)} after ${duration(end - attempt.start)}, from ${absolute(attempt.start)}`;
          return (
            <span
              key={attempt.start}
              className="lane-bar"
              role="img"
              aria-label={said}
              title={said}
              style={
                {
                  left: place(attempt.start),
                  width: `${(100 * (end - attempt.start)) / width}%`,
                  '--state': `var(--state-${attempt.outcome})`,
                } as CSSProperties
              }
            />
          );
        })}
      </span>
    </>
  );
}
