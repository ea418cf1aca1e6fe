import { after, afterEach, before } from 'node:test';
import { Stage } from './stage.ts';

/** Lines of a service's output that a failed test shows. */
const SHOWN_LINES = 40;

/** `bare`: each test starts its own service; otherwise one service runs on the stage for all tests of a file. */
type StageKind = 'served' | 'served through a wiretap' | 'bare';

/** Returns a getter of one stage for all tests of the calling file; call the getter inside tests. */
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
    // A service that a test started on a bare stage would evict pods in the next test, too.
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
