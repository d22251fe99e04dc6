/** How an item came to where it is: the newest move first. */
import { Button, Paper, Text, Title } from '@mantine/core';
import { useState } from 'react';
import type { Move, Moves } from '../services/items';
import { Trouble } from './Answer';
import { label } from '../model/states';
import { Moment, State } from './bits';
import { Tone } from './Tone';

const SHOWN = 30;
/** A step whose condition was false: the item stays in its status. */
const SKIPPED = 'skipped';

export function ItemHistory({ history, tones }: { history: Moves; tones: ReadonlyMap<string, string> }) {
  const [whole, setWhole] = useState(false);
  const moves = history.moves.toReversed();
  const shown = whole ? moves : moves.slice(0, SHOWN);
  return (
    <Paper component="section" aria-label="History">
      <Title order={2} mb="xs">
        History
      </Title>
      {history.error && <Trouble error={history.error} />}
      <ol className="history">
        {shown.map((move, index) => (
          <Line key={move.number} move={move} tones={tones} newRun={shown[index + 1]?.run !== move.run} />
        ))}
      </ol>
      {moves.length > SHOWN && (
        <Button variant="subtle" size="compact-xs" mt="xs" onClick={() => setWhole(!whole)}>
          {whole ? 'Only the newest' : `All ${moves.length} moves`}
        </Button>
      )}
    </Paper>
  );
}

function Line({ move, tones, newRun }: { move: Move; tones: ReadonlyMap<string, string>; newRun: boolean }) {
  const about = [
    move.how === SKIPPED && move.step,
    move.step !== null &&
      move.attempt !== null &&
      move.attempt > 1 &&
      `attempt ${move.attempt} of ${move.step}`,
    move.how !== null && move.how !== SKIPPED && label(move.how),
    move.movedBy && `by ${move.movedBy}`,
    newRun && move.run > 1 && `run ${move.run}`,
  ].filter(Boolean);
  return (
    <li>
      <div className="history-line">
        {move.how === SKIPPED ? (
          <State state={SKIPPED} />
        ) : (
          <Tone status={`${move.code} ${move.status}`} tone={tones.get(move.status)} />
        )}
        <Text span fz="xs" c="dimmed">
          <Moment at={move.at} />
        </Text>
      </div>
      {(about.length > 0 || move.reason) && (
        <Text fz="xs" c="dimmed" pl={15}>
          {about.join(', ')}
          {move.reason && (
            <>
              {about.length > 0 && ': '}
              <Text span c="var(--mantine-color-text)" inherit>
                {move.reason}
              </Text>
            </>
          )}
        </Text>
      )}
    </li>
  );
}
