/** An item with all that there is to tell of it, and what can be done with it. */
import { useEffect, useRef, useState } from 'react';
import { useClient, type CombinedError } from 'urql';
import { graphql, type ResultOf } from '../api/graphql';

export const ITEM = graphql(`
  query Item($itemId: ID!) {
    item(itemId: $itemId) {
      itemId
      pipeline
      version
      status
      code
      phase
      open
      held
      sentence
      step
      attempt
      retryAt
      failures
      errorType
      run
      jobId
      enteredAt
      statusAt
      submittedBy
      reviewedBy
      reviewedAt
      detail {
        newestVersion
        payload
        results
        spent
        places
        byHand
        lastError {
          step
          run
          attempt
          type
          message
          at
        }
        steps {
          step
          function
          agent
          state
          optional
          when
          attempt
          retryAt
          attempts {
            run
            attempt
            outcome
            startedAt
            endedAt
            error
          }
        }
        runs {
          run
          jobId
          undo
          state
          createdAt
          finishedAt
          spent
        }
      }
    }
  }
`);

export type Item = NonNullable<ResultOf<typeof ITEM>['item']>;
export type ItemStep = Item['detail']['steps'][number];

/** A step is somebody's work; a review is not. */
export function isWork(step: ItemStep): boolean {
  return step.function !== null || step.agent !== null;
}

export type ItemRun = Item['detail']['runs'][number];

export const HISTORY = graphql(`
  query ItemHistory($itemId: ID!, $first: Int!, $after: String) {
    item(itemId: $itemId) {
      history(first: $first, after: $after) {
        nodes {
          number
          fromStatus
          code
          status
          at
          version
          run
          step
          attempt
          movedBy
          reason
          how
        }
        pageInfo {
          hasNextPage
          endCursor
        }
      }
    }
  }
`);

export type Move = NonNullable<ResultOf<typeof HISTORY>['item']>['history']['nodes'][number];

export const RESTART = graphql(`
  mutation RestartItem($itemId: ID!, $at: String, $only: Boolean, $payload: JSON, $reason: String) {
    restartItem(itemId: $itemId, at: $at, only: $only, payload: $payload, reason: $reason) {
      run
    }
  }
`);

export const DECIDE_ITEM = graphql(`
  mutation DecideItem($itemId: ID!, $decision: String!, $notes: String, $payload: JSON) {
    decideItem(itemId: $itemId, decision: $decision, notes: $notes, payload: $payload) {
      state
      approvals
      quorum
    }
  }
`);

export const MOVE_ITEM = graphql(`
  mutation MoveItem($itemId: ID!, $status: String!, $payload: JSON, $reason: String) {
    moveItem(itemId: $itemId, status: $status, payload: $payload, reason: $reason) {
      status
    }
  }
`);

export const ROLL_BACK_ITEM = graphql(`
  mutation RollBackItem($itemId: ID!, $reason: String) {
    rollBackItem(itemId: $itemId, reason: $reason) {
      status
    }
  }
`);

export const MIGRATE_ITEM = graphql(`
  mutation MigrateItem($itemId: ID!, $version: Int!, $dryRun: Boolean) {
    migrateItem(itemId: $itemId, version: $version, dryRun: $dryRun) {
      version
      status
    }
  }
`);

export function itemPath(itemId: string, more = ''): string {
  return `/v1/items/${encodeURIComponent(itemId)}${more}`;
}

const PAGE = 200;

export interface Moves {
  readonly moves: readonly Move[];
  readonly complete: boolean;
  readonly error: CombinedError | null;
}

/** All moves of an item, in order; `tick` reads what has come since. */
export function useMoves(itemId: string, tick: number): Moves {
  const client = useClient();
  const [found, setFound] = useState<Moves>({ moves: [], complete: false, error: null });
  const known = useRef<readonly Move[]>([]);
  const busy = useRef(false);
  const wanted = useRef(0);
  useEffect(() => {
    wanted.current = tick;
    if (busy.current) return;
    busy.current = true;
    const read = async () => {
      for (;;) {
        const seen = wanted.current;
        const after = known.current.at(-1)?.number;
        const answer = await client
          .query(
            HISTORY,
            { itemId, first: PAGE, after: after === undefined ? null : String(after) },
            { requestPolicy: 'network-only' },
          )
          .toPromise();
        if (answer.error) throw answer.error;
        const page = answer.data?.item?.history;
        known.current = [...known.current, ...(page?.nodes ?? [])];
        const complete = !page?.pageInfo.hasNextPage;
        setFound({ moves: known.current, complete, error: null });
        if (complete && seen === wanted.current) return;
      }
    };
    read()
      .catch((error: CombinedError) => setFound({ moves: known.current, complete: false, error }))
      .finally(() => {
        busy.current = false;
      });
  }, [client, itemId, tick]);
  return found;
}
