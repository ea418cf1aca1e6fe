import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { DemoNode, PendingRow } from '#shared/console/api.ts';
import { showMessage } from '../acts.ts';
import { pending } from '../live.ts';
import { Countdown, Section } from '../parts.ts';
import { href } from '../route.ts';
import { post, sentenceOf } from '../server.ts';
import { useAnswer } from '../use-answer.ts';

/** A taint that the demo's workloads tolerate differently. */
const TAINT = 'maintenance=now:NoExecute';
const KEY = 'maintenance';

/** The simulated cluster: its nodes and pods, and buttons that taint nodes. */
export function DemoNodes({ cluster }: { readonly cluster: string }): VNode {
  const { answer: nodes = [], error } = useAnswer('GET api/demo/nodes', () => ({}), []);
  const rows = new Map([...(pending.value?.values() ?? [])].map((row) => [row[0], row]));
  return html`
    <${Section} id="try" title="Try it: taint a node"
      note="web is evicted immediately, db after 10s, checkout after 30s; logs stays">
      ${error !== undefined && html`<p class="failed">${error}</p>`}
      <ul class="demo">
        ${nodes.map((node) => html`<${Node} key=${node.node} ...${{ cluster, node, rows }} />`)}
      </ul>
    </${Section}>
  `;
}

interface NodeProps {
  readonly cluster: string;
  readonly node: DemoNode;
  readonly rows: ReadonlyMap<string, PendingRow>;
}

function Node({ cluster, node: { node, taints, pods }, rows }: NodeProps): VNode {
  const [busy, setBusy] = useState(false);
  const tainted = taints.some((taint) => taint.startsWith(KEY));
  const change = async () => {
    if (busy) return;
    setBusy(true);
    try {
      const asks = { node, taint: tainted ? KEY : TAINT };
      const done = tainted
        ? await post('POST api/demo/untaint', asks)
        : await post('POST api/demo/taint', asks);
      showMessage(done.message);
    } catch (error) {
      showMessage(sentenceOf(error));
    } finally {
      setBusy(false);
    }
  };
  return html`
    <li class="card" data-tainted=${tainted}>
      <div class="lead">
        <h3><a href=${href(['node', cluster, node])}>${node}</a></h3>
        <button type="button" class=${`button ${tainted ? '' : 'main'}`} aria-disabled=${busy} onClick=${change}>
          ${tainted ? 'Untaint' : 'Taint'}<span class="unseen"> ${node}</span>
        </button>
      </div>
      <p class="small soft">
        ${taints.length === 0 ? 'no taint' : taints.map((taint) => html`<span key=${taint} class="taint">${taint}</span>`)}
      </p>
      <ul class="pods">
        ${pods.map((pod) => html`<${Pod} key=${pod.uid} ...${{ cluster, pod, row: rows.get(pod.uid) }} />`)}
      </ul>
    </li>
  `;
}

interface PodProps {
  readonly cluster: string;
  readonly pod: DemoNode['pods'][number];
  readonly row: PendingRow | undefined;
}

function Pod({ cluster, pod: { namespace, pod, status }, row }: PodProps): VNode {
  const counts = row?.[6] === 'scheduled' ? html`<${Countdown} at=${row[5]} />` : undefined;
  const leaving = status === 'Terminating';
  const state = counts ?? (row ? 'due' : leaving ? 'terminating' : '');
  return html`
    <li data-state=${counts ? 'counts' : row || leaving ? 'goes' : undefined}>
      <a href=${href(['pod', cluster, namespace, pod])}>${pod}</a>
      ${state !== '' && html`<span class="left">${state}</span>`}
    </li>
  `;
}
