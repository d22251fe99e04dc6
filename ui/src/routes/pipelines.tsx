import { useAsk, useTick } from '../api/live';
import { CopyAs } from '../components/actions';
import { Answer, Nothing } from '../components/Answer';
import { Page, useNow } from '../components/bits';
import { PipelineTable } from '../components/PipelineTable';
import { ALL_ITEM_EVENTS, PIPELINES } from '../services/pipelines';

const MINUTE = 60_000;

export function Pipelines() {
  const tick = useTick(ALL_ITEM_EVENTS, 2000) + Math.floor(useNow() / MINUTE);
  const asked = useAsk(PIPELINES, {});
  return (
    <Page
      title="Pipelines"
      about="Items on their way from status to status"
      actions={<CopyAs path="/v1/pipelines" cli="ostinato pipelines ls" />}
    >
      <Answer of={asked}>
        {({ pipelines }) =>
          pipelines.length === 0 ? (
            <Nothing title="There are no pipelines">
              Define one with “ostinato pipelines apply pipeline.json”.
            </Nothing>
          ) : (
            <PipelineTable pipelines={pipelines} tick={tick} />
          )
        }
      </Answer>
    </Page>
  );
}
