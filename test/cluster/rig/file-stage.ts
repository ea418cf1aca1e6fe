import { after, afterEach, before } from 'node:test';
import { Stage } from './stage.ts';

/** Lines of a service's output that a failed test shows. */
const SHOWN_LINES = 40;

/** Whether one service runs on the stage for all tests of a file, or (`bare`) each test starts its own. */
type StageKind = 'served' | 'served through a wiretap' | 'bare';

/** A stage for all tests of the calling file, to be asked for from within tests. */
export function fileStage(kind: StageKind): () => Stage {
  let stage: Stage | undefined;
  before(async () => {
    stage = await Stage.open();
    if (kind === 'served') await stage.start();
    if (kind === 'served through a wiretap') await stage.start({ kubeconfig: await stage.tap() });
  });
  afterEach((context) => {
    if (!('passed' in context) || context.passed) return;
    for (const { at, text } of stage?.services.at(-1)?.output.slice(-SHOWN_LINES) ?? []) {
      context.diagnostic(`${new Date(at).toISOString().slice(11, 23)} the service said: ${text}`);
    }
  });
  afterEach(async () => {
    // What a test started on a bare stage would evict in the next one, too.
    if (kind === 'bare') await stage?.killAll();
    stage?.cluster.check();
  });
  after(async () => {
    await stage?.close();
  });
  return () => {
    if (!stage) throw new Error('The stage is open while tests run only.');
    return stage;
  };
}
